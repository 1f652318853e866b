import type { Core, ElementDefinition, LayoutOptions } from "cytoscape";

import type { Graph } from "../api/types";

export const LAYOUTS = [
  { value: "grid", label: "Grid" },
  { value: "hierarchical", label: "Hierarchical" },
  { value: "radial", label: "Radial" },
] as const;
export type Layout = (typeof LAYOUTS)[number]["value"];

export const STEP = 1.3;
const LABEL = 40;
const WIDER = 3; // rows of single memories are about three times as many columns

export function elementsOf(graph: Graph): ElementDefinition[] {
  const degree = new Map<string, number>();
  for (const one of graph.relations)
    for (const end of [one.source_entity_id, one.target_entity_id]) degree.set(end, (degree.get(end) ?? 0) + 1);
  const nodes = graph.entities.map((one) => ({
    group: "nodes" as const,
    data: {
      id: one.id,
      label: one.name.length > LABEL ? `${one.name.slice(0, LABEL - 1)}…` : one.name,
      type: one.entity_type,
      negative: one.polarity === "negative",
      size: 24 + Math.min(6, degree.get(one.id) ?? 0) * 4,
    },
  }));
  const edges = graph.relations.map((one) => ({
    group: "edges" as const,
    data: { id: one.id, source: one.source_entity_id, target: one.target_entity_id, label: one.relation_type.replaceAll("_", " ") },
  }));
  return [...nodes, ...edges];
}

/** Puts the nodes in place. What nothing is related to stands in rows below: a tree or circles would only push it far out. */
export function arrange(cy: Core, layout: Layout): void {
  const single = cy.nodes().filter((node) => node.degree(false) === 0);
  const related = cy.elements().difference(single);
  const common = { fit: false, animate: false, avoidOverlap: true, nodeDimensionsIncludeLabels: true };
  const rows = { name: "grid", ...common, condense: true, avoidOverlapPadding: 24 } as const;
  const options: Record<Layout, LayoutOptions> = {
    grid: rows,
    hierarchical: { name: "breadthfirst", ...common, directed: true, spacingFactor: 1.1 },
    radial: { name: "concentric", ...common, concentric: (node) => node.degree(), levelWidth: () => 1, minNodeSpacing: 36 },
  };
  if (layout === "grid" || related.empty()) cy.layout(options.grid).run();
  else {
    related.layout(options[layout]).run();
    if (single.nonempty()) {
      const box = related.boundingBox();
      const below = { x1: box.x1, y1: box.y2 + 60, w: box.w, h: box.w };
      single.layout({ ...rows, cols: Math.ceil(Math.sqrt(single.length * WIDER)), boundingBox: below }).run();
    }
  }
  fit(cy);
}

export function fit(cy: Core): void {
  cy.resize();
  if (cy.width() === 0) return; // its pane is not on show
  cy.fit(undefined, 36);
  if (cy.zoom() > 1.4) {
    cy.zoom(1.4);
    cy.center();
  }
}

/** The library would add a style element of its own, which the page's policy refuses. It leaves that out where its id is taken, and
 * what the element would say stands in our stylesheet. */
export function takeStyleId(): void {
  const own = document.querySelector('link[rel="stylesheet"]');
  if (own) own.id = "__________cytoscape_stylesheet";
}

export function zoom(cy: Core | null, factor: number): void {
  cy?.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
}
