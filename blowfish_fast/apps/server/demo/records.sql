-- Made-up people, always the same ones: uniform and normal draws are read off hashes.
CREATE TEMP MACRO part(i, draw) AS (hash(i, draw) % 1000003 + 0.5) / 1000003;
CREATE TEMP MACRO normal(i, draw) AS sqrt(-2 * ln(part(i, draw))) * cos(2 * pi() * part(i, -draw));

CREATE TABLE salaries (salary DOUBLE NOT NULL, age INTEGER NOT NULL, department TEXT);
INSERT INTO salaries
WITH people AS (
  SELECT
    i,
    greatest(16, least(79, floor(10 + 41 * exp(0.33 * normal(i, 1) - 0.05)))) AS age,
    CASE
      WHEN part(i, 2) < 0.3 THEN {'name': 'care', 'base': 38}
      WHEN part(i, 2) < 0.4 THEN {'name': 'finance', 'base': 62}
      WHEN part(i, 2) < 0.65 THEN {'name': 'logistics', 'base': 34}
      WHEN part(i, 2) < 0.8 THEN {'name': 'research', 'base': 58}
      ELSE {'name': 'sales', 'base': 44}
    END AS department
  FROM range(50000) AS all_of_them(i)
)
SELECT
  round(department.base * exp(0.35 * normal(i, 3)) * (0.6 + age / 100), 1),
  age,
  CASE WHEN part(i, 4) > 0.01 THEN department.name END
FROM people;

-- Some patients come far more often than others.
CREATE TABLE visits (
  patient INTEGER NOT NULL, visit INTEGER NOT NULL, age INTEGER, ward TEXT, day DATE NOT NULL
);
INSERT INTO visits
WITH patients AS (
  SELECT
    i AS patient,
    least(200, floor(part(i, 5) ** (-1 / 1.2)))::INTEGER AS times,
    CASE WHEN part(i, 6) > 0.03 THEN least(99, floor(42 * exp(0.5 * normal(i, 7)))) END AS age
  FROM range(8000) AS all_of_them(i)
),
visits AS (
  SELECT patient, age, row_number() OVER (ORDER BY patient, one) - 1 AS visit
  FROM (SELECT patient, age, unnest(range(times)) AS one FROM patients)
)
SELECT
  patient,
  visit,
  age,
  CASE
    WHEN part(visit, 8) < 0.4 THEN 'emergency'
    WHEN part(visit, 8) < 0.7 THEN 'heart'
    WHEN part(visit, 8) < 0.8 THEN 'children'
    ELSE 'surgery'
  END,
  DATE '2024-01-01' + floor(366 * part(visit, 9))::INTEGER
FROM visits;

CREATE TABLE tests (
  patient INTEGER NOT NULL, test INTEGER NOT NULL, glucose DOUBLE, day DATE NOT NULL
);
INSERT INTO tests
SELECT
  floor(8000 * part(i, 10)),
  i,
  CASE WHEN part(i, 11) > 0.05 THEN round(exp(1.75 + 0.25 * normal(i, 12)), 1) END,
  DATE '2024-01-01' + floor(366 * part(i, 13))::INTEGER
FROM range(16000) AS all_of_them(i);
