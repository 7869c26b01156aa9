# %% [markdown]
# # Audit of other libraries
#
# A *subject* is a callable of data and epsilon. The audit calls it many times on two
# neighbouring data sets and looks for an event that tells them apart by more than
# epsilon. Exceptions, warnings and the last bits of doubles are outputs like others.
# Here it meets OpenDP, SmartNoise and diffprivlib: faults that their own trackers
# describe are found where the version has them, and nothing where there is none.
#
# `pip install 'blowfish_fast[rivals]'` installs the versions that were audited.

# %%
import warnings
from functools import cache
from importlib.metadata import version

warnings.simplefilter("ignore")

import diffprivlib.mechanisms
import diffprivlib.models
import diffprivlib.tools
import matplotlib.pyplot as plt
import numpy as np
import opendp.prelude as dp
from snsql.sql._mechanisms.laplace import Laplace as SmartNoiseLaplace

from blowfish_fast.audit import Subject, audit_subject

for package in ("opendp", "smartnoise-sql", "diffprivlib", "scikit-learn"):
    print(package, version(package))

# %% [markdown]
# ## Adapters
#
# An adapter is a function of data and epsilon that returns what would be published.
# What is dear to make is made once for each epsilon.

# %%
dp.enable_features("contrib")
NUMBERS = dp.vector_domain(dp.atom_domain(T=float, nan=False))
WORDS = dp.vector_domain(dp.atom_domain(T=str))
NUMBER = dp.atom_domain(T=float, nan=False)


@cache
def opendp_counter(epsilon):
    counted = dp.t.make_count(NUMBERS, dp.symmetric_distance())
    return counted >> dp.m.then_laplace(1 / epsilon)


def opendp_count(data, epsilon):
    """The number of records, with discrete Laplace noise."""
    return opendp_counter(epsilon)(data)


@cache
def opendp_adder(epsilon):
    return dp.m.make_laplace(NUMBER, dp.absolute_distance(T=float), 1 / epsilon)


def opendp_double(data, epsilon):
    """The number of records as a double, with Laplace noise."""
    return opendp_adder(epsilon)(float(len(data)))


@cache
def opendp_keys_made(epsilon):
    counted = dp.t.make_count_by(WORDS, dp.symmetric_distance())
    return counted >> dp.m.then_laplace_threshold(scale=1 / epsilon, threshold=3)


def opendp_keys(data, epsilon):
    """Counts by key; keys below a threshold are left out."""
    return opendp_keys_made(epsilon)(data)


@cache
def smartnoise_adder(epsilon):
    return SmartNoiseLaplace(epsilon, sensitivity=1)


def smartnoise_double(data, epsilon):
    """What SmartNoise SQL adds to a count that is asked for as a double."""
    return smartnoise_adder(epsilon).release([len(data)])[0]


def diffprivlib_geometric(data, epsilon):
    """The number of records, with geometric noise."""
    noise = diffprivlib.mechanisms.Geometric(epsilon=epsilon, sensitivity=1)
    return noise.randomise(len(data))


def diffprivlib_laplace(data, epsilon):
    """The number of records, with Laplace noise in doubles."""
    noise = diffprivlib.mechanisms.Laplace(epsilon=epsilon, sensitivity=1)
    return noise.randomise(float(len(data)))


def diffprivlib_median(data, epsilon):
    """The median of numbers between 0 and 1."""
    return float(diffprivlib.tools.median(data, epsilon=epsilon, bounds=(0, 1)))


def diffprivlib_regression(data, epsilon):
    """The slope of a line through the origin, x between 0 and 10, y between 0 and 1."""
    model = diffprivlib.models.LinearRegression(
        epsilon=epsilon, bounds_X=(0, 10), bounds_y=(0, 1), fit_intercept=False
    )
    return float(model.fit(data[:, :1], data[:, 1]).coef_[0])


# %% [markdown]
# ## Neighbours and promises
#
# One record is there or not; for the regression, whose number of records is public, one
# record is another one. OpenDP states its own promise: epsilon and delta from `map`.

# %%
somebody = [([1.0], [])]
numbers = np.array([0.2, 0.4, 0.7])
line = np.array([[1.0, 0.5], [2.0, 1.0], [0.0, 0.0]])
moved = line.copy()
moved[2, 0] = 10.0
epsilon, delta = opendp_keys_made(1.0).map(1)
print(f"keys of OpenDP: epsilon {epsilon:g}, delta {delta:.5f}")

subjects = [
    Subject(opendp_count, somebody),
    Subject(opendp_double, somebody),
    Subject(smartnoise_double, somebody),
    Subject(diffprivlib_geometric, somebody),
    Subject(diffprivlib_median, [(numbers, numbers[:2])]),
    Subject(opendp_keys, [(["a"], [])], epsilon=epsilon, delta=delta),
    Subject(diffprivlib_laplace, somebody),
    Subject(
        diffprivlib_median,
        [(np.append(numbers, np.nan), numbers)],
        name="diffprivlib_median, a value missing",
    ),
    Subject(diffprivlib_regression, [(line, moved)]),
]

# %% [markdown]
# ## What is found
#
# A bound above epsilon is a proof, at 99.9 %, that the promise is broken. Where nothing
# is found, the subject is called at a larger epsilon and held against the stated one:
# the excess that is seen says how much would have been found.

# %%
reports = []
for subject in subjects:
    report = audit_subject(subject, samples=2000, trials=1)
    reports.append(report)
    said = "within its promise" if report.passed else "BROKEN"
    bound = report.finding.evidence.log_ratio
    print(f"{subject.name}: {said}; epsilon at least {bound:.2f}")
    if report.passed:
        print(f"    {report.power}")
    else:
        print(f"    {report.finding.evidence.event}")

# %%
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
names = [report.subject.name for report in reports]
bounds = [report.finding.evidence.log_ratio for report in reports]
colours = ["C0" if report.passed else "C3" for report in reports]
axes.barh(names, bounds, color=colours)
axes.axvline(1, color="black", linestyle="--")
axes.invert_yaxis()
axes.set_xlabel("epsilon that is proven; 1 was promised")
plt.show()

# %% [markdown]
# - **OpenDP, keys above a threshold**
#   ([opendp#2922](https://github.com/opendp/opendp/issues/2922)): counts equal to the
#   threshold are released, and delta does not count them.
# - **diffprivlib, Laplace noise in doubles**
#   ([issue 94](https://github.com/IBM/differential-privacy-library/issues/94),
#   [issue 19](https://github.com/IBM/differential-privacy-library/issues/19)): a noisy
#   1 is never finer than 2^-53, a noisy 0 near zero mostly is.
# - **diffprivlib, a missing value** (issue 80, named in the code of `quantile`): one
#   record without a value makes every median "nan".
# - **diffprivlib, linear regression**
#   ([issue 105](https://github.com/IBM/differential-privacy-library/issues/105)): the
#   sensitivity of squares is taken from the lower bound alone, here 0.
#
# ## Bits that tell
#
# Doubles between 0 and 1/16, by the place of their last bit: what Laplace noise in
# doubles leaves of nobody and of one record, and what OpenDP leaves of them.


# %%
def last_bits(call, data, number=4000):
    drawn = np.array([call(data, 1.0) for _ in range(number)])
    small = drawn[(drawn > 0) & (drawn < 1 / 16)]
    whole = [float(value).as_integer_ratio()[1].bit_length() - 1 for value in small]
    return np.bincount(whole, minlength=70)[:70] / number


figure, both = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
for axes, call in zip(both, (diffprivlib_laplace, opendp_double), strict=True):
    for data, said in (([], "nobody"), ([1.0], "one record")):
        axes.plot(last_bits(call, data), label=said)
    axes.set_title(call.__name__)
    axes.set_xlabel("bits after the point")
both[0].set_ylabel("part of all outputs")
both[0].legend()
plt.show()
