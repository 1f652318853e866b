import { useEffect, useState } from "preact/hooks";

import { asProblem, type Api, type Problem } from "../api/client";
import type { EntityList, EntityType, Graph, SearchAnswer } from "../api/types";

export interface Filter {
  mode: "keyword" | "meaning";
  words: string;
  types: EntityType[];
  page: number;
}
/** The memory around which the graph is drawn; without one, all of it within the service's caps. */
export interface Focus {
  id: string;
  name: string;
  depth: number;
}
export interface Loaded<T> {
  value: T | null;
  loading: boolean;
  problem: Problem | null;
}

export const PAGE_SIZE = 50;
export const TOP_K = 20;
const CAPS = { max_nodes: 100, max_relations: 500 };
const SETTLED_MS = 250;

/** Loads again when `keys` change. What came before stays on show until then; an answer that was overtaken is dropped. */
export function useLoaded<T>(load: ((signal: AbortSignal) => Promise<T>) | null, keys: readonly unknown[], settle = 0): Loaded<T> {
  const [state, setState] = useState<Loaded<T>>({ value: null, loading: load !== null, problem: null });
  useEffect(() => {
    if (!load) {
      setState({ value: null, loading: false, problem: null });
      return;
    }
    const control = new AbortController();
    setState((before) => ({ ...before, loading: true, problem: null }));
    const timer = setTimeout(() => {
      load(control.signal)
        .then((value) => setState({ value, loading: false, problem: null }))
        .catch((error: unknown) => {
          if (!control.signal.aborted) setState((before) => ({ ...before, loading: false, problem: asProblem(error) }));
        });
    }, settle);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, keys);
  return state;
}

export function useGraph(api: Api, focus: Focus | null, times: number): Loaded<Graph> {
  const query = focus ? { entity_ids: [focus.id], max_depth: focus.depth, ...CAPS } : CAPS;
  return useLoaded((signal) => api.get<Graph>("/memories/graph", query, signal), [api, focus, times]);
}

export function useList(api: Api, filter: Filter, times: number): Loaded<EntityList> {
  const query = { q: filter.words || undefined, entity_type: filter.types, page: filter.page, page_size: PAGE_SIZE };
  const load = filter.mode === "keyword" ? (signal: AbortSignal) => api.get<EntityList>("/memories/entities", query, signal) : null;
  return useLoaded(load, [api, filter, times], SETTLED_MS);
}

export function useSearch(api: Api, filter: Filter, times: number): Loaded<SearchAnswer> {
  const body = { query: filter.words, top_k: TOP_K, ...(filter.types.length ? { entity_types: filter.types } : {}) };
  const asked = filter.mode === "meaning" && filter.words.trim() !== "";
  return useLoaded(asked ? (signal) => api.post<SearchAnswer>("/memories/search", body, signal) : null, [api, filter, times], SETTLED_MS);
}
