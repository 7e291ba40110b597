# SPDX-License-Identifier: Apache-2.0
"""Columns of ceilings.csv and saturation.csv."""

from flitlab.sim.measure.columns.registry import Column, declare

LOADS = "load"
"""Unit of values in loads."""

declare(
    Column("ceilings", "scenario", "Label of the scenario."),
    Column("ceilings", "load", "Of `total`, at which load."),
    Column("ceilings", "ceiling", "Its name; those of which there are several are `bounds:volumetric` and the like."),
    Column("ceilings", "lower", "Lower end of the certified interval."),
    Column("ceilings", "upper", "Upper end of the certified interval."),
    Column(
        "ceilings",
        "unit",
        "`load`; `theta_hose` where host channels are infinite; `flits/tick/host` for `total`, and where load 1 is"
        " another rate than a flit per tick; there `theta`, a factor of the demand, with `normalise: none`.",
    ),
    Column("ceilings", "method", "What computed it, or `omitted`."),
    Column("ceilings", "seconds", "CPU time that this took, without that of compiling kernels and loading them.", "s"),
    Column("ceilings", "note", "Why it is omitted, or the bottleneck."),
)

declare(
    Column(
        "saturation",
        "saturation",
        "The saturation point: of a search, the middle between the highest load carried and the lowest saturated, or "
        "the most that its probes up to there deliver, if that is less. Empty while a search has not ended.",
        LOADS,
        "saturation",
    ),
    Column(
        "saturation",
        "ci95",
        "Half-width of its 95 % interval over seeds, with the distance to the farther end of the bracket (largest over "
        "seeds); empty where the interval ends at 0 or the certified limit, and so has sides of different width.",
        LOADS,
    ),
    Column("saturation", "ci95_low", "Lower end of the interval.", LOADS),
    Column("saturation", "ci95_high", "Upper end of the interval.", LOADS),
    Column("saturation", "lower", "Lower end of what holds the brackets of all seeds.", LOADS),
    Column("saturation", "upper", "Upper end of the same.", LOADS),
    Column("saturation", "seeds", "Seeds."),
    Column("saturation", "accepted", "Accepted traffic just past saturation.", "flits/tick/host"),
    Column("saturation", "ceiling", "Name of the ceiling that `efficiency` is of."),
    Column("saturation", "ceiling_lower", "Lower end of that ceiling.", LOADS),
    Column("saturation", "ceiling_upper", "Upper end of that ceiling.", LOADS),
    Column("saturation", "efficiency", "`saturation` over the upper end of the ceiling.", "", "efficiency"),
    Column("saturation", "min_flow_ratio", "Least received / created of any source, just past saturation."),
    Column("saturation", "jain", "Jain's fairness index just past saturation."),
    Column("saturation", "latency_half", "Mean latency at half of the saturation point.", "ticks"),
    Column(
        "saturation",
        "note",
        "Why a search has not ended, or misses its resolution; of a ceiling, that it is that of a few hosts.",
    ),
)
