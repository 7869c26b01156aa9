"""Every experiment is found, and says what it needs to say."""

from __future__ import annotations

import pytest

from blowfish_fast.advice.experiments.experiment import Settings
from blowfish_fast.errors import InputError
from experiments.collection import all_experiments, experiment_named
from experiments.dawa_comparison import LARGEST, SMALLEST, Table2
from experiments.dawa_setup import CONTENDERS, OURS

NAMES = list(all_experiments())


def test_numbers_are_ordered_as_numbers():
    dawa = [name for name in NAMES if name.startswith("dawa-fig")]
    assert dawa == [f"dawa-fig{number}" for number in range(3, 8)]


def test_an_unknown_name_is_refused_with_a_hint():
    with pytest.raises(InputError, match="Did you mean dawa-fig3"):
        experiment_named("dawa_fig3")
    with pytest.raises(InputError, match="blowfish-fig1"):
        experiment_named("")


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_states_claim_protocol_and_distinct_tasks(name):
    experiment = all_experiments()[name]
    for words in (experiment.title, experiment.claim, experiment.protocol):
        assert words.strip() == words != ""
    assert experiment.trials >= 1
    for quick in (True, False):
        tasks = experiment.tasks(Settings(trials=2, seed=1, quick=quick))
        assert tasks
        assert len({task.key for task in tasks}) == len(tasks)


def test_dawa_follows_its_paper():
    """Five workloads of each kind, four epsilons, seven sets, three trials."""
    table = Table2()
    tasks = table.tasks(Settings(trials=table.trials, seed=1))
    assert len(tasks) == 4 * 7 * 4 * 5
    assert table.trials == 3
    kinds = {task.arguments["kind"] for task in tasks}
    assert kinds == {"uniform", "identity", "clustered", "large clustered"}


def table_rows(error_of):
    return [
        {
            "workload": "uniform",
            "epsilon": epsilon,
            "set": name,
            "method": one.label,
            "error": error_of(one.label, epsilon, name),
        }
        for epsilon in SMALLEST
        for name in ("easy", "hard")
        for one in CONTENDERS
    ]


def test_the_printed_ratios_are_reproduced_and_better_ones_beat_them():
    """Rows made from Table 2 itself: ratios as printed, then a quarter above."""
    settings = Settings(trials=1, seed=1)
    columns = {
        method: number
        for number, method in enumerate(
            ("Identity", "Privelet", "MWEM", "EFPA", "P-HP", "S.First")
        )
    }

    def printed(label, epsilon, name):
        if label not in columns:
            return 1.0
        table = SMALLEST if name == "hard" else LARGEST
        return table[epsilon][columns[label]]

    as_printed = Table2().summary(table_rows(printed), settings)
    assert as_printed.verdict.outcome == "reproduced"
    assert "at least 7.09 times" in as_printed.verdict.by
    better = Table2().summary(
        table_rows(lambda *key: printed(*key) * (1.0 if key[0] == OURS else 1.25)),
        settings,
    )
    assert better.verdict.outcome == "beaten"
    worse = Table2().summary(
        table_rows(lambda *key: printed(*key) * (1.0 if key[0] == OURS else 0.5)),
        settings,
    )
    assert worse.verdict.outcome == "not reproduced"
