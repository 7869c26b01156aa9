"""What the estimators share: parameters, clones, reading records, paying for a fit.

They follow scikit-learn's conventions without importing it. The constructor stores its
parameters unchanged, and `fit` checks them. Every call of `fit` charges the ledger,
before it measures anything. Attributes that `fit` learned end in an underscore; they
are part of the release, so they are public.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import (
    BlowfishError,
    DomainError,
    EpsilonError,
    InputError,
    PolicyError,
    PrivacyError,
    nearest,
)
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.policies import POLICIES, Policy
from blowfish_fast.release.file import Release

if TYPE_CHECKING:
    from blowfish_fast.accounting.ledger import Ledger

WORDS: dict[str, Any] = {
    name: POLICIES[name] for name in ("add_remove", "full", "line", "attribute")
}
"""Policies that a domain alone determines."""


def check_stated(policy: Any) -> None:
    """Refuse what cannot become a policy, before any data arrives.

    Parameters
    ----------
    policy : object
        What a caller gave as policy. A word of `WORDS`, a `Policy`, and anything
        that can be called are accepted.

    Raises
    ------
    PolicyError
        If it is none of these.
    """
    acceptable = policy in WORDS if isinstance(policy, str) else callable(policy)
    if not acceptable and not isinstance(policy, Policy):
        raise PolicyError(
            f"state the policy: one of {sorted(WORDS)}, a Policy, or a function from "
            f"a Domain to one; received {policy!r}"
        )


def policy_over(policy: Any, domain: Domain) -> Policy:
    """Return the stated policy over a domain.

    Parameters
    ----------
    policy : str, Policy or callable
        A word of `WORDS`, a policy over this same domain, or a function that takes
        the domain and returns a policy over it.
    domain : Domain
        The cells over which the records are counted.

    Returns
    -------
    Policy
        The policy over `domain`.

    Raises
    ------
    PolicyError
        If `policy` is none of the three, or the function returns no policy.
    DomainError
        If the policy lies over another domain.
    """
    check_stated(policy)
    if isinstance(policy, str):
        policy_by_word: Policy = WORDS[policy](domain)
        return policy_by_word
    stated = policy if isinstance(policy, Policy) else policy(domain)
    if not isinstance(stated, Policy):
        raise PolicyError(f"the function for the policy returned {stated!r}")
    if stated.domain != domain:
        raise DomainError(
            f"the policy lies over {stated.domain!r} and the data over {domain!r}; "
            "give the policy as a word, or as a function from a Domain"
        )
    return stated


class NotFittedError(BlowfishError, ValueError, AttributeError):
    """An estimator was asked before it was fitted.

    Examples
    --------
    >>> from blowfish_fast.apps.interop import PrivateKMeans
    >>> try:
    ...     PrivateKMeans("full", 2, epsilon=1, bounds=(0, 10)).predict([[1.0]])
    ... except NotFittedError as problem:
    ...     print(problem)
    This PrivateKMeans instance is not fitted yet. Call 'fit' with appropriate
    arguments before using this estimator.
    """


class NotNumbersError(InputError, TypeError):
    """Records hold something that is no number."""


class RepeatedFitWarning(UserWarning):
    """A second fit spends epsilon a second time.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", RepeatedFitWarning)  # refuse second fits
    """


class Estimator:
    """Parameters, clones and the paid fit of an estimator.

    The two subclasses are dataclasses, so their fields are the parameters that
    scikit-learn reads and sets by name.
    """

    _kind: ClassVar[str | None] = None
    """What scikit-learn calls such an estimator."""

    policy: Any
    epsilon: Any
    bounds: Any
    bins: Any
    outside: Any
    ledger: Ledger | None
    random_state: Any

    release_: Release
    policy_: Policy
    n_features_in_: int
    n_fits_: int
    epsilon_spent_: Fraction

    @classmethod
    def _parameters(cls) -> list[str]:
        return list(inspect.signature(cls.__init__).parameters)[1:]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool
            Without effect: no parameter is itself an estimator. Scikit-learn passes
            it.

        Returns
        -------
        dict
            The value of each parameter, by its name.
        """
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; what was learned stays until the next fit.

        Parameters
        ----------
        **params : object
            New values by parameter name. These are the names that the constructor
            takes, and nothing else. Scikit-learn's searches set them this way: its
            protocol asks for names that are not written out here.

        Returns
        -------
        Estimator
            The same object.

        Raises
        ------
        InputError
            If a name is none of the constructor's.
        """
        parameters = self._parameters()
        for name, value in params.items():
            if name not in parameters:
                raise InputError(
                    f"Invalid parameter {name!r} for estimator {self!r}"
                    f"{nearest(name, parameters)}. "
                    f"Valid parameters are: {parameters!r}."
                )
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted twin. A ledger is shared: a copy would forget charges."""
        return type(self)(**self.get_params())

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle keeps: the release as bytes, never a ledger."""
        if self.ledger is not None:
            raise PrivacyError(
                "a copy of a ledger would forget what is charged to the other one, so "
                "an estimator with a ledger is not copied or pickled; clone it, or "
                "set_params(ledger=None) and name no ledger in the copy"
            )
        state = self.__dict__.copy()
        if "release_" in state:
            state["release_"] = (type(self.release_), self.release_.to_bytes())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "release_" in state:
            kind, content = state["release_"]
            self.release_ = kind.from_bytes(content)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "release_")

    def __sklearn_tags__(self) -> Any:
        # By name: the package is typed and tested without scikit-learn, too.
        utilities: Any = importlib.import_module("sklearn.utils")

        transforms = hasattr(self, "transform")
        return utilities.Tags(
            estimator_type=self._kind,
            target_tags=utilities.TargetTags(required=False),
            transformer_tags=utilities.TransformerTags() if transforms else None,
            non_deterministic=self.random_state is None,
        )

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not defaults[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _check_fitted(self) -> None:
        if hasattr(self, "release_"):
            return
        message = (
            f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with "
            "appropriate arguments before using this estimator."
        )
        error: type[BlowfishError] = NotFittedError
        if "sklearn.exceptions" in sys.modules:
            theirs = sys.modules["sklearn.exceptions"].NotFittedError
            error = type("NotFittedError", (NotFittedError, theirs), {})
        raise error(message)

    def _array(self, records: Any, *, fitting: bool = False) -> AnyArray:
        """Read records as rows of numbers, or refuse them in scikit-learn's words."""
        if hasattr(records, "toarray"):
            raise InputError(
                "sparse data was passed, but dense records are required: use .toarray()"
            )
        rows = np.asarray(records)
        if rows.dtype.kind == "c":
            raise InputError("Complex data not supported")
        if rows.ndim != 2:
            raise InputError(
                f"Expected 2D array, got {rows.ndim}D array instead. Reshape your "
                "data: X.reshape(-1, 1) if it has a single column"
            )
        if rows.dtype.kind == "O":
            try:
                rows = rows.astype(np.float64)
            except (TypeError, ValueError):
                # Their messages would quote a person's value.
                raise NotNumbersError(
                    "records must be numbers; an argument must be a string or a real "
                    "number, and some are neither, or texts that are none"
                ) from None
        if rows.dtype.kind not in "biuf":
            raise InputError(f"records must be numbers; received dtype {rows.dtype}")
        rows = np.asarray(rows, dtype=np.float64)
        if rows.shape[1] == 0 or rows.shape[0] == 0:
            what = "feature(s)" if rows.shape[1] == 0 else "sample(s)"
            raise InputError(
                f"Found array with 0 {what} (shape={rows.shape}) while a minimum of 1 "
                "is required."
            )
        if not fitting and rows.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {rows.shape[1]} features, but {type(self).__name__} is "
                f"expecting {self.n_features_in_} features as input"
            )
        if not np.isfinite(rows).all():
            raise InputError(
                "Input X contains NaN or infinity. Decide what a missing value means "
                "before the fit"
            )
        self._note_names(records, fitting=fitting)
        return rows

    def _note_names(self, records: Any, *, fitting: bool) -> None:
        """Keep the names of a table's columns, and ask for the same ones later."""
        columns = getattr(records, "columns", None)
        names = None
        if columns is not None and all(isinstance(name, str) for name in columns):
            names = np.array(list(columns), dtype=object)
        if fitting:
            self.__dict__.pop("feature_names_in_", None)
            if names is not None:
                self.feature_names_in_ = names
            return
        fitted_names = getattr(self, "feature_names_in_", None)
        if (
            names is not None
            and fitted_names is not None
            and list(names) != list(fitted_names)
        ):
            raise InputError(
                "The feature names should match those that were passed during fit: "
                f"{list(fitted_names)}; received {list(names)}"
            )

    def _build_policy(self, columns: int) -> Policy:
        """Return the policy over the public domain; bounds are never guessed."""
        check_stated(self.policy)
        if self.epsilon is None:
            raise EpsilonError("state epsilon, such as 0.5; received None")
        if isinstance(self.policy, Policy):
            if self.policy.domain.ndim != columns:
                raise InputError(
                    f"the policy's domain has {self.policy.domain.ndim} attributes "
                    f"and X has {columns} columns; pass one column per attribute"
                )
            self._check_order(self.policy.domain)
            return self.policy
        if self.bounds is None:
            raise InputError(
                "a policy given by a word needs public bounds=(low, high), one pair "
                "or a pair per column. They are never read from the data, which would "
                "reveal its extremes"
            )
        try:
            bounds = np.asarray(self.bounds)
            if bounds.dtype.kind not in "biuf":
                raise ValueError("bounds are numbers")
            pairs = np.broadcast_to(bounds.astype(np.float64), (columns, 2))
            cells = np.broadcast_to(np.asarray(self.bins), (columns,))
        except (TypeError, ValueError):
            raise InputError(
                f"X has {columns} columns: give one pair of bounds and one number of "
                f"bins, or {columns} of them; received {self.bounds!r}, {self.bins!r}"
            ) from None
        domains = [
            Domain.from_edges(np.linspace(low, high, int(count) + 1))
            for (low, high), count in zip(pairs, cells, strict=True)
        ]
        return policy_over(self.policy, Domain.product(*domains))

    def _check_order(self, domain: Domain) -> None:
        """Refuse the domain's own names in another order; others do no harm."""
        columns = list(getattr(self, "feature_names_in_", ()))
        swapped = any(
            own != name and name in domain.names
            for own, name in zip(domain.names, columns, strict=False)
        )
        if swapped:
            raise InputError(
                f"the policy's domain has the attributes {list(domain.names)} and X "
                f"the columns {columns}; pass them in that order: "
                f"X[{list(domain.names)}]"
            )

    def _check_outside(self) -> None:
        if self.outside not in ("refuse", "clamp"):
            raise InputError(
                f'outside must be "refuse" or "clamp"; received {self.outside!r}. Give '
                "stray values a cell with Domain.with_extra_cells"
            )

    def _pay(self, mechanism: Mechanism, data: Any) -> Release:
        """Release, charging the ledger if there is one, and keep the count."""
        fits = getattr(self, "n_fits_", 0)
        if self.ledger is None:
            release = mechanism.release(data, self.random_state)
        else:
            release = self.ledger.release(mechanism, data, rng=self.random_state)
        self.release_ = release
        self.n_fits_ = fits + 1
        spent = getattr(self, "epsilon_spent_", Fraction(0))
        self.epsilon_spent_ = spent + release.guarantee.epsilon
        if fits:
            warnings.warn(
                f"this {type(self).__name__} was fitted {self.n_fits_} times; each fit "
                f"spends its epsilon, {float(self.epsilon_spent_):g} in all so far"
                + ("" if self.ledger is None else ", charged to its ledger"),
                RepeatedFitWarning,
                stacklevel=3,
            )
        return release
