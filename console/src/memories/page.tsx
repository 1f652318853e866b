import { useEffect, useMemo, useState } from "preact/hooks";

import type { Api } from "../api/client";
import type { Entity, Graph, SearchAnswer } from "../api/types";
import type { Claims, Scope } from "../session/session";
import { Refresh } from "../ui/icons";
import { Empty, Loading, ProblemNotice, Segments } from "../ui/parts";
import { DeleteDialog } from "./delete-dialog";
import { Drawer } from "./drawer";
import { ForgetDialog } from "./forget-dialog";
import { GraphView } from "./graph";
import { NothingFound, Pager, Rows } from "./list";
import { GraphPane } from "./graph-pane";
import { joined, matching, plural } from "./rules";
import { ScopeBar } from "./scope-bar";
import { SelectionBar, useSelection } from "./selection";
import { Toolbar } from "./toolbar";
import { PAGE_SIZE, useGraph, useList, useSearch, type Filter, type Focus, type Loaded } from "./use-memories";

const EMPTY: Graph = { entities: [], relations: [], truncated: false };
const PANES = [
  { value: "list", label: "List" },
  { value: "graph", label: "Graph" },
] as const;
type Pane = (typeof PANES)[number]["value"];
type Asked = { kind: "delete"; ids: readonly string[] } | { kind: "forget" } | null;

interface Props {
  api: Api;
  claims: Claims;
  scope: Scope;
  onScope: (scope: Scope) => void;
}

export function MemoriesPage({ api, claims, scope, onScope }: Props) {
  const [filter, setFilter] = useState<Filter>({ mode: "keyword", words: "", types: [], page: 1 });
  const [focus, setFocus] = useState<Focus | null>(null);
  const [times, setTimes] = useState(0);
  const [opened, setOpened] = useState<string | null>(null);
  const [asked, setAsked] = useState<Asked>(null);
  const [pane, setPane] = useState<Pane>("list");
  const selection = useSelection();
  const graph = useGraph(api, focus, times);
  const list = useList(api, filter, times);
  const search = useSearch(api, filter, times);
  const meaning = filter.mode === "meaning";
  const drawn = useMemo(() => drawnGraph(filter, focus, graph.value, search.value), [filter, focus, graph.value, search.value]);
  const items = meaning ? (search.value?.items.map((one) => one.entity) ?? []) : (list.value?.items ?? []);
  const names = useMemo(() => new Map([...drawn.entities, ...items].map((one) => [one.id, one])), [drawn, items]);

  useEffect(() => {
    setOpened(null);
    setFocus(null);
  }, [api]);

  function onNode(id: string) {
    if (selection.selecting) selection.toggle(id);
    else setOpened(id);
  }
  function changed() {
    setTimes((before) => before + 1);
    selection.end();
  }
  return (
    <main class={`memories${opened ? " with-drawer" : ""}`} data-pane={pane}>
      <div class="page-head">
        <h1>My Memories</h1>
        <ScopeBar api={api} claims={claims} scope={scope} onScope={onScope} />
        <div class="buttons page-actions">
          <button type="button" class="square" aria-label="Reload" title="Reload" onClick={() => setTimes(times + 1)}>
            <Refresh />
          </button>
          <button type="button" onClick={() => setAsked({ kind: "forget" })}>
            Forget by words
          </button>
          <button type="button" aria-pressed={selection.selecting} onClick={selection.selecting ? selection.end : selection.begin}>
            Select Mode
          </button>
        </div>
      </div>
      <div class="tools">
        <Toolbar filter={filter} onFilter={setFilter} />
        {selection.selecting && (
          <SelectionBar
            selection={selection}
            onAll={() => selection.add(items.map((one) => one.id))}
            onDelete={() => setAsked({ kind: "delete", ids: [...selection.chosen] })}
          />
        )}
        <div class="panes-switch">
          <Segments label="View" options={PANES} value={pane} onChange={setPane} />
        </div>
      </div>
      <section class="list" aria-label="List">
        {meaning ? (
          <Answers search={search} filter={filter} />
        ) : (
          <Found loaded={list} total={list.value?.total ?? 0} filtered={filter.words !== "" || filter.types.length > 0} />
        )}
        <Rows
          items={items}
          scores={new Map(meaning ? search.value?.items.map((one) => [one.entity.id, one]) : [])}
          owned={!scope.subject}
          opened={opened}
          selecting={selection.selecting}
          chosen={selection.chosen}
          onNode={onNode}
        />
        {!meaning && list.value && (
          <Pager page={filter.page} size={PAGE_SIZE} total={list.value.total} onPage={(page) => setFilter({ ...filter, page })} />
        )}
      </section>
      <GraphPane loaded={graph} drawn={drawn} focus={focus} onWhole={() => setFocus(null)}>
        <GraphView
          graph={drawn}
          opened={opened}
          chosen={selection.chosen}
          selecting={selection.selecting}
          onNode={onNode}
          onBox={selection.add}
        />
      </GraphPane>
      {opened && (
        <Drawer
          api={api}
          id={opened}
          times={times}
          names={names}
          onOpen={setOpened}
          onClose={() => {
            const row = document.querySelector<HTMLElement>(`[data-memory="${CSS.escape(opened)}"]`);
            setOpened(null);
            row?.focus();
          }}
          onFocus={(entity) => {
            setFocus({ id: entity.id, name: entity.name, depth: 2 });
            setFilter({ mode: "keyword", words: "", types: [], page: 1 });
            setPane("graph");
          }}
          onDelete={(id) => setAsked({ kind: "delete", ids: [id] })}
          onChanged={changed}
        />
      )}
      {asked?.kind === "delete" && (
        <DeleteDialog
          api={api}
          ids={asked.ids}
          onClose={() => setAsked(null)}
          onChanged={() => {
            if (opened && asked.ids.includes(opened)) setOpened(null);
            if (focus && asked.ids.includes(focus.id)) setFocus(null);
            changed();
          }}
        />
      )}
      {asked?.kind === "forget" && (
        <ForgetDialog
          api={api}
          onClose={() => setAsked(null)}
          onChanged={() => {
            setOpened(null);
            setFocus(null);
            changed();
          }}
        />
      )}
    </main>
  );
}

/** What the graph shows: the hits of a question with what surrounds them, or what matches the words and types. */
function drawnGraph(filter: Filter, focus: Focus | null, graph: Graph | null, found: SearchAnswer | null): Graph {
  if (filter.mode === "meaning" && found)
    return joined(
      found.subgraph,
      found.items.map((one) => one.entity),
    );
  return focus ? (graph ?? EMPTY) : matching(graph ?? EMPTY, filter.words, filter.types);
}

function Found({ loaded, total, filtered }: { loaded: Loaded<{ items: Entity[] }>; total: number; filtered: boolean }) {
  return (
    <div aria-live="polite" class="list-head">
      {loaded.problem && <ProblemNotice problem={loaded.problem} />}
      {!loaded.value && loaded.loading && <Loading what="memories" />}
      {loaded.value && total > 0 && (
        <p class="muted">{filtered ? `${plural(total, "memory matches", "memories match")}` : plural(total, "memory", "memories")}</p>
      )}
      {loaded.value && total === 0 && !loaded.problem && <NothingFound filtered={filtered} />}
    </div>
  );
}

function Answers({ search, filter }: { search: Loaded<SearchAnswer>; filter: Filter }) {
  if (filter.words.trim() === "")
    return <Empty title="Ask a question">“Where does my sister live?” finds what answers it, in other words too, with scores.</Empty>;
  const found = search.value;
  return (
    <div aria-live="polite" class="list-head">
      {search.problem && <ProblemNotice problem={search.problem} />}
      {search.loading && <Loading what="answers" />}
      {found?.time_filter && <p class="muted">Only what held or was said in “{found.time_filter.phrase}”.</p>}
      {found?.abstained && !search.loading && (
        <Empty title="Nothing in this memory answers that">Being near in meaning is not enough to be shown.</Empty>
      )}
      {found && !found.abstained && <p class="muted">{plural(found.items.length, "memory", "memories")}, best first</p>}
    </div>
  );
}
