"""The command that looks at one photo from all sides."""

from __future__ import annotations

from typing import Any

import click

from shiftproof.cli_options import about_detectors, about_model, about_output, about_predicting, about_store


@click.command()
@click.argument("photo", type=click.Path(exists=True, dir_okay=False))
@click.option("--model", default="lite:0", show_default=True, help="The model to ask.")
@click.option("--vary", default="zoom,crop,hue", show_default=True, help="zoom, crop, hue and corruptions, comma-separated.")
@click.option("--steps", type=click.IntRange(2, 99), default=9, show_default=True, help="Pictures of each variation.")
@click.option("--out-images", help="Images of other classes, among which detectors place the photo.")
@about_detectors
@about_model
@about_predicting
@about_store
@about_output
@click.option("-o", "--report", default="probe.html", show_default=True, help="Where to write the report.")
def probe(photo: str, model: str, report: str, **options: Any) -> None:
    """Vary one photo step by step: what the model says, and how foreign each detector finds it.

    Example: shiftproof probe cat.jpg --vary zoom,hue,fog --out-images clothes/
    """
    from shiftproof.cli_models import model_of
    from shiftproof.cli_novelty import detectors_typed, keep_of, parameters_typed
    from shiftproof.cli_steps import Bench, fill_bench, measured, save_report_of, show
    from shiftproof.image_sets import open_images
    from shiftproof.image_sets.varied import varied
    from shiftproof.store import Store
    from shiftproof.studies.probe import ProbeStudy

    names = [word.strip() for word in options["vary"].split(",") if word.strip()]
    variations = [varied(photo, name, steps=options["steps"]) for name in dict.fromkeys(names)]
    classifier = model_of(model, options)
    outside, training = (options[name] and open_images(options[name]) for name in ("out_images", "training"))
    study = ProbeStudy(
        models=[classifier],
        image_sets=variations,
        out_set=outside,
        training=training,
        detectors=detectors_typed(options["detectors"]),
        preset=options["preset"],
        parameters=parameters_typed(options["chosen"]),
        keep=keep_of([classifier], Store(options["store"])),
    )
    bench = Bench([study], [*variations, *(images for images in (outside, training) if images)])
    options |= {"scored": "full", "unmatched": "unlabelled", "merge": None}  # labels do not matter here
    fill_bench(classifier, bench, options)
    results = measured(bench, options)
    show(results, options)
    save_report_of(results, bench, report, options)
