"""Maps as QGIS opens them: run by the Python that QGIS was installed for.

    /usr/bin/python3 tests/release/places/qgis_reader.py FOLDER A.gpkg B.tif

Prints JSON: the version, and the layers of each file, as a person would find them who
drops the file into QGIS. Each layer is drawn, FOLDER/A.gpkg.LAYER.png, and the picture
is looked at cell by cell. Nothing of this package is imported.
"""

from __future__ import annotations

import json
import os
import sys

os.environ["QT_QPA_PLATFORM"] = "offscreen"

from qgis.core import (
    Qgis,
    QgsApplication,
    QgsCoordinateTransformContext,
    QgsExpressionContextUtils,
    QgsMapRendererParallelJob,
    QgsMapSettings,
    QgsProviderRegistry,
    QgsProviderSublayerDetails,
    QgsRasterLayer,
    QgsRenderContext,
)
from qgis.PyQt.QtCore import QSize
from qgis.PyQt.QtGui import QColor

SIZE = QSize(600, 400)
NEAR = 6
"""Pixels around the middle of a cell that are looked at: lines are 5 apart."""


def drawn(layer, path):
    """Draw a layer as the canvas of QGIS does; return settings and picture."""
    settings = QgsMapSettings()
    settings.setLayers([layer])
    settings.setBackgroundColor(QColor("white"))
    settings.setOutputSize(SIZE)
    settings.setDestinationCrs(layer.crs())
    settings.setExtent(layer.extent())
    job = QgsMapRendererParallelJob(settings)
    job.start()
    job.waitForFinished()
    assert not job.errors(), [error.message for error in job.errors()]
    picture = job.renderedImage()
    picture.save(path)
    return settings, picture


def colours_near(settings, picture, place):
    """Return the colours around the middle of a cell, the commonest first."""
    point = settings.mapToPixel().transform(place)
    count = {}
    for x in range(int(point.x()) - NEAR, int(point.x()) + NEAR + 1):
        for y in range(int(point.y()) - NEAR, int(point.y()) + NEAR + 1):
            if 0 <= x < picture.width() and 0 <= y < picture.height():
                colour = picture.pixelColor(x, y).name()
                count[colour] = count.get(colour, 0) + 1
    return sorted(count, key=count.get, reverse=True)


def rules_of(layer):
    """Return label, filter, kind and how many cells, of each rule of a style."""
    context = QgsRenderContext()
    scopes = QgsExpressionContextUtils.globalProjectLayerScopes(layer)
    context.expressionContext().appendScopes(scopes)
    features = list(layer.getFeatures())
    found = []
    for rule in layer.renderer().rootRule().children():
        rule.startRender(context, layer.fields(), "")
        kind = rule.symbol().symbolLayer(0).layerType()
        held = 0
        for feature in features:
            context.expressionContext().setFeature(feature)
            held += rule.isFilterOK(feature, context)
        rule.stopRender(context)
        found.append([rule.label(), rule.filterExpression(), kind, held])
    return found


def vector(layer, path):
    """Return what QGIS says of a layer of polygons, and how it draws each cell."""
    message, loaded = layer.loadDefaultStyle()
    settings, picture = drawn(layer, path)
    columns = [field.name() for field in layer.fields()]
    named = next(column for column in columns if column != "fid")
    cells = {}
    for feature in layer.getFeatures():
        if not feature.geometry().isNull():
            middle = feature.geometry().poleOfInaccessibility(1e-3)[0].asPoint()
            cells[str(feature[named])] = colours_near(settings, picture, middle)
    renderer = layer.renderer().type()
    return {
        "style": [loaded, message],
        "features": layer.featureCount(),
        "about": layer.metadata().abstract(),
        "columns": columns,
        "invalid": [
            feature.id()
            for feature in layer.getFeatures()
            if not feature.geometry().isNull() and not feature.geometry().isGeosValid()
        ],
        "renderer": renderer,
        "rules": rules_of(layer) if renderer == "RuleRenderer" else [],
        "cells": cells,
    }


def raster(layer, path):
    """Return what QGIS says of a raster."""
    drawn(layer, path)
    source = layer.dataProvider()
    bands = range(1, layer.bandCount() + 1)
    block = source.block(1, layer.extent(), layer.width(), layer.height())
    rows = [
        [block.value(row, column) for column in range(layer.width())]
        for row in range(layer.height())
    ]
    return {"bands": [layer.bandName(band) for band in bands], "estimate": rows}


def layers_of(path, folder):
    """Return what QGIS finds in a file, by the name of each layer."""
    begin = os.path.join(folder, os.path.basename(path))
    if path.endswith(".tif"):
        layers = {"": QgsRasterLayer(path)}
    else:
        options = QgsProviderSublayerDetails.LayerOptions(
            QgsCoordinateTransformContext()
        )
        listed = QgsProviderRegistry.instance().querySublayers(path)
        layers = {each.name(): each.toLayer(options) for each in listed}
    found = {}
    for name, layer in layers.items():
        look = raster if path.endswith(".tif") else vector
        box = layer.extent()
        found[name] = {
            "valid": layer.isValid(),
            "system": layer.crs().authid(),
            "system_name": layer.crs().description(),
            "projection": layer.crs().toProj(),
            "box": [box.xMinimum(), box.yMinimum(), box.xMaximum(), box.yMaximum()],
            **look(layer, f"{begin}.{name or 'raster'}.png"),
        }
    return found


def main(folder, *paths):
    application = QgsApplication([], False)
    application.initQgis()
    try:
        found = {os.path.basename(path): layers_of(path, folder) for path in paths}
        told = {"version": Qgis.QGIS_VERSION, "files": found}
        sys.stdout.write(json.dumps(told) + "\n")
    finally:
        application.exitQgis()


if __name__ == "__main__":
    main(*sys.argv[1:])
