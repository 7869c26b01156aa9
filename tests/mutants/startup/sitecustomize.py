"""Processes started by a test under a mutant see the mutant too."""

from tests.mutants.runner import install

install()
