import type { StylesheetJson } from "cytoscape";

import { ENTITY_TYPES } from "../api/types";

/** The stylesheet of the graph, in the page's own colours of the moment (light or dark). */
export function graphStyle(page: Element): StylesheetJson {
  const css = getComputedStyle(page);
  const colour = (name: string) => css.getPropertyValue(`--${name}`).trim();
  return [
    {
      selector: "node",
      style: {
        label: "data(label)",
        width: "data(size)",
        height: "data(size)",
        "background-color": colour("type-custom"),
        "border-width": 2,
        "border-color": colour("surface"),
        color: colour("text"),
        "font-family": "system-ui, sans-serif",
        "font-size": 12,
        "text-valign": "bottom",
        "text-margin-y": 6,
        "text-wrap": "wrap",
        "text-max-width": "120px",
        "text-background-color": colour("surface"),
        "text-background-opacity": 0.85,
        "text-background-padding": "2px",
        "text-background-shape": "roundrectangle",
        "min-zoomed-font-size": 6,
      },
    },
    ...ENTITY_TYPES.map((type) => ({ selector: `node[type = "${type}"]`, style: { "background-color": colour(`type-${type}`) } })),
    { selector: "node[?negative]", style: { "border-style": "dashed", "border-color": colour("danger"), "border-width": 3 } },
    {
      selector: "edge",
      style: {
        label: "data(label)",
        width: 1.5,
        "line-color": colour("line-strong"),
        "target-arrow-color": colour("line-strong"),
        "target-arrow-shape": "triangle",
        "curve-style": "bezier",
        color: colour("muted"),
        "font-family": "system-ui, sans-serif",
        "font-size": 10,
        "text-rotation": "autorotate",
        "text-background-color": colour("surface"),
        "text-background-opacity": 0.9,
        "text-background-padding": "2px",
        "min-zoomed-font-size": 8,
      },
    },
    { selector: "node.opened", style: { "border-color": colour("accent"), "border-width": 4 } },
    { selector: "node.chosen", style: { "border-color": colour("accent"), "border-width": 6, "border-style": "double" } },
  ];
}
