"""Dyadic costs: of all buckets of power-of-two length, at every offset.

A bucket is named by its level k and its end e: [e - 2^k, e). Ends come in blocks of
2^15, so that a table of all n log n costs never exists; the levels of a block are
independent jobs.

    level       how                         ranks, for the block of ends |=====|
      0 ..  5   cell by cell                none
      6 ..  9   tiles of 512 ends           [-|-]
     10 .. 12   tiles of 4096 ends          [--|--]
     13 .. 15   one tile                    [-----|-----]
     16 ..      tiles of many blocks        a state is carried from block to block
    6 or more   if the whole array has at most 16 distinct values per cell of the
                shortest bucket of its line: ranks of the whole array, state carried
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray

from .moving_pointer import CLOSED, MEAN, MODE, dense_ranks, rank_stretch
from .short_windows import SHORT, SHORT_LEVELS, short_deviations, short_pinball
from .window_slide import (
    ABOVE,
    CHUNK,
    VALUES_PER_CELL,
    Slide,
    TileRoom,
    slide_tiles,
    tile_room,
)

BLOCK = 1 << 15

# First level, last level, ends per tile. A tile is as long as its longest bucket, so
# a frame of two tiles holds every bucket that ends in the second.
TILES = ((6, 9, 1 << 9), *((k - 2, k, 1 << k) for k in range(12, 31, 3)))


class Room(NamedTuple):
    """Scratch of one thread.

    Attributes
    ----------
    tiles : TileRoom
        Scratch of `slide_tiles`.
    block_ranks : ndarray of int32
        Ranks of the cells of a frame.
    block_table : ndarray of int64
        The value of each of these ranks.
    """

    tiles: TileRoom
    block_ranks: AnyArray
    block_table: IntArray


class LevelJob(NamedTuple):
    """A job that costs the buckets of some levels, block by block.

    Attributes
    ----------
    levels : range
        The levels.
    fill : Callable[[int, int, ndarray of int64, Room], None]
        ``fill(begin, end, rows, room)`` fills ``rows[level]`` for the ends ``begin + 1
        .. end``. It is called once for each block.
    in_order : bool
        Whether it carries a state from block to block, so that these come in order.
    """

    levels: range
    fill: Callable[[int, int, IntArray, Room], None]
    in_order: bool


def _short_job(values: IntArray, recipes: IntArray) -> LevelJob:
    levels = range(min(SHORT_LEVELS, len(recipes)))
    recipes = recipes[: len(levels)]

    def fill(begin: int, end: int, rows: IntArray, room: Room) -> None:
        if recipes[0, ABOVE] == MEAN:
            short_deviations(
                values, begin + 1, end - begin, recipes, room.tiles.scratch, rows
            )
            return
        for level in levels:
            first = max(begin + 1, 1 << level)
            if first <= end:
                row = rows[level, first - begin - 1 : end - begin]
                short_pinball(values, first, recipes[level], room.tiles.scratch, row)

    return LevelJob(levels, fill, in_order=False)


def _tiled_job(
    values: IntArray,
    ranks: AnyArray,
    table: IntArray,
    recipes: IntArray,
    levels: range,
    tile: int,
) -> LevelJob:
    """Levels on ranks of tiles, each no longer than a block."""
    distinct = table.size - 2
    some = slice(levels.start, levels.stop)

    def fill(begin: int, end: int, rows: IntArray, room: Room) -> None:
        origin = max(begin - BLOCK, 0)
        cells = values[origin:end]
        parent = ranks[origin:end]
        parent_distinct = distinct
        if distinct > 2 * BLOCK and tile < BLOCK:
            # Ranking the block first keeps the bitmaps of its tiles small.
            parent_distinct = rank_stretch(
                parent, distinct, cells, room.tiles.bitmap, room.tiles.marks_before,
                room.block_ranks, room.block_table,
            )  # fmt: skip
            parent = room.block_ranks
        slide_tiles(
            cells, parent, parent_distinct, begin + 1 - origin, end - begin, tile,
            recipes[some], room.tiles, rows[some],
        )  # fmt: skip

    return LevelJob(levels, fill, in_order=False)


def _carried_job(
    values: IntArray,
    ranks: AnyArray,
    table: IntArray,
    recipes: IntArray,
    levels: range,
    tile: int,
) -> LevelJob:
    """Levels whose state is carried, on ranks of a frame of two tiles of many blocks.

    A tile as long as the array, or longer, has the ranks of the whole array.
    """
    whole = tile >= values.size
    size = table.size if whole else 2 * tile + 2
    frame_ranks = ranks if whole else np.empty(2 * tile, dtype=np.int32)
    frame_table = table if whole else np.empty(size, dtype=np.int64)
    slides = [Slide(recipes[level], np.empty(size, np.int32)) for level in levels]
    distinct = table.size - 2

    def fill(begin: int, end: int, rows: IntArray, room: Room) -> None:
        nonlocal distinct
        origin = max(begin - begin % tile - tile, 0)
        frame = slice(origin, begin - begin % tile + tile)
        if begin % tile == 0 and not whole:
            distinct = rank_stretch(
                ranks[frame], table.size - 2, values[frame], room.tiles.bitmap,
                room.tiles.marks_before, frame_ranks, frame_table,
            )  # fmt: skip
            for slide in slides:
                slide.state[MODE] = CLOSED
        for level, slide in zip(levels, slides, strict=True):
            first = max(begin + 1, 1 << level)
            if first <= end:
                row = rows[level, first - begin - 1 : end - begin]
                slide.fill(
                    values[frame], frame_ranks, frame_table[: distinct + 2],
                    first - origin, room.tiles.scratch, row,
                )  # fmt: skip

    return LevelJob(levels, fill, in_order=True)


def level_jobs(
    values: IntArray, recipes: IntArray
) -> tuple[list[LevelJob], Callable[[], Room]]:
    """Plan the jobs that cost every bucket, and the room a thread needs for them.

    A row of costs is filled for the ends that leave room for the bucket, short rows
    throughout.

    Parameters
    ----------
    values : ndarray of int64, shape (cells,)
        Whole counts.
    recipes : ndarray of int64, shape (levels, 8)
        A recipe (`window_slide.window_recipe`) for each power of two up to the number
        of cells.

    Returns
    -------
    jobs : list[LevelJob]
        The jobs.
    make_room : callable
        Returns the scratch of one thread.
    """
    count = len(recipes)
    jobs = [_short_job(values, recipes)]
    longest_tile = 0
    distinct = 0
    if count > SHORT_LEVELS:
        ranks, table = dense_ranks(values)
        distinct = table.size - 2
        for lowest, highest, tile in TILES:
            levels = range(lowest, min(highest + 1, count))
            few_values = distinct <= VALUES_PER_CELL << lowest
            if few_values or 2 * tile >= values.size:
                # One by one, so that they can be done by several threads.
                every = max(values.size, BLOCK)
                jobs += [
                    _carried_job(values, ranks, table, recipes, range(k, k + 1), every)
                    for k in levels
                ]
            else:
                make_job = _tiled_job if tile <= BLOCK else _carried_job
                jobs.append(make_job(values, ranks, table, recipes, levels, tile))
                longest_tile = max(longest_tile, min(tile, BLOCK))

    def make_room() -> Room:
        tiles = longest_tile
        words = (distinct >> 6) + 1 if tiles else 0
        block = 2 * BLOCK if tiles and distinct > 2 * BLOCK else 0
        scratch = np.empty((4, CHUNK + SHORT), dtype=np.int64)
        return Room(
            tiles=tile_room(tiles, words, scratch),
            block_ranks=np.empty(block, dtype=np.int32),
            block_table=np.empty(block + 2, dtype=np.int64),
        )

    return jobs, make_room
