import type { Core, EventObject } from "cytoscape";
import { useEffect, useRef, useState } from "preact/hooks";

import type { Graph } from "../api/types";
import { Fit, Minus, Plus } from "../ui/icons";
import { Segments } from "../ui/parts";
import { arrange, elementsOf, fit, LAYOUTS, STEP, takeStyleId, zoom, type Layout } from "./graph-core";
import { graphStyle } from "./graph-style";
import { plural } from "./rules";

const DARK = "(prefers-color-scheme: dark)";

interface Props {
  graph: Graph;
  opened: string | null;
  chosen: ReadonlySet<string>;
  selecting: boolean;
  onNode: (id: string) => void;
  onBox: (ids: string[]) => void;
}

export function GraphView({ graph, opened, chosen, selecting, onNode, onBox }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const cy = useRef<Core | null>(null);
  const [ready, setReady] = useState(false);
  const [layout, setLayout] = useState<Layout>("hierarchical");
  const called = useRef({ onNode, onBox });
  called.current = { onNode, onBox };

  useEffect(() => {
    let gone = false;
    const resized = new ResizeObserver(() => cy.current && fit(cy.current));
    if (place.current) resized.observe(place.current);
    const dark = matchMedia(DARK);
    const paint = () => place.current && cy.current?.style(graphStyle(place.current));
    void import("cytoscape").then(({ default: cytoscape }) => {
      if (gone || !place.current) return;
      takeStyleId();
      const made = cytoscape({
        container: place.current,
        minZoom: 0.1,
        maxZoom: 3,
        selectionType: "additive",
        style: graphStyle(place.current),
      });
      made.on("tap", "node", (event: EventObject) => called.current.onNode(event.target.id() as string));
      made.on("boxend", () => {
        // The nodes of the box are known only once it has been let go of.
        setTimeout(() => {
          called.current.onBox(made.nodes(":selected").map((node) => node.id()));
          made.elements().unselect();
        });
      });
      cy.current = made;
      setReady(true);
    });
    dark.addEventListener("change", paint);
    return () => {
      gone = true;
      resized.disconnect();
      dark.removeEventListener("change", paint);
      cy.current?.destroy();
      cy.current = null;
    };
  }, []);

  const shape = [...graph.entities.map((one) => one.id), ...graph.relations.map((one) => one.id)].join(" ");
  useEffect(() => {
    const core = cy.current;
    if (!core) return;
    core.elements().remove();
    core.add(elementsOf(graph));
    arrange(core, layout);
    if (place.current) place.current.dataset.layout = layout; // what is drawn, not what was asked for
  }, [ready, shape, layout]);

  useEffect(() => {
    const core = cy.current;
    if (!core) return;
    // What changed without changing the shape: a name, a type's colour.
    for (const element of elementsOf(graph)) core.getElementById(String(element.data.id)).data(element.data);
  }, [ready, graph]);

  useEffect(() => {
    cy.current?.nodes().forEach((node) => {
      node.toggleClass("opened", node.id() === opened);
      node.toggleClass("chosen", chosen.has(node.id()));
    });
  }, [ready, shape, layout, opened, chosen]);

  useEffect(() => {
    cy.current?.userPanningEnabled(!selecting);
    cy.current?.boxSelectionEnabled(selecting);
  }, [ready, selecting]);

  const told = `Graph of ${plural(graph.entities.length, "memory", "memories")} and ${plural(graph.relations.length, "relation")}. The list holds the same memories.`;
  return (
    <section class="graph" aria-label="Graph">
      <div class="graph-tools">
        <Segments label="Layout" options={LAYOUTS} value={layout} onChange={setLayout} />
        <div class="segments" role="group" aria-label="Zoom">
          <button type="button" class="square" aria-label="Zoom out" title="Zoom out" onClick={() => zoom(cy.current, 1 / STEP)}>
            <Minus />
          </button>
          <button type="button" class="square" aria-label="Zoom in" title="Zoom in" onClick={() => zoom(cy.current, STEP)}>
            <Plus />
          </button>
          <button type="button" class="fit" onClick={() => cy.current && fit(cy.current)}>
            <Fit /> Fit View
          </button>
        </div>
      </div>
      <div ref={place} class="graph-canvas" role="img" aria-label={told} />
    </section>
  );
}
