import type { Entity, SearchItem } from "../api/types";
import { Empty } from "../ui/parts";
import { closed } from "./rules";

export function TypeChip({ type }: { type: string }) {
  return <span class={`chip type-${type}`}>{type}</span>;
}

interface RowsProps {
  items: readonly Entity[];
  scores?: ReadonlyMap<string, SearchItem>;
  /** Whether each row says whose memory it is. */
  owned: boolean;
  opened: string | null;
  selecting: boolean;
  chosen: ReadonlySet<string>;
  onNode: (id: string) => void;
}

export function Rows({ items, scores, owned, opened, selecting, chosen, onNode }: RowsProps) {
  if (items.length === 0) return null;
  const now = new Date();
  return (
    <ul class="rows" aria-label="Memories">
      {items.map((one) => (
        <li key={one.id}>
          {selecting ? (
            <label class="row">
              <input type="checkbox" checked={chosen.has(one.id)} onChange={() => onNode(one.id)} />
              <Summary one={one} score={scores?.get(one.id)} over={closed(one, now)} owned={owned} />
            </label>
          ) : (
            <button
              type="button"
              class="row"
              aria-current={opened === one.id ? "true" : undefined}
              data-memory={one.id}
              onClick={() => onNode(one.id)}
            >
              <Summary one={one} score={scores?.get(one.id)} over={closed(one, now)} owned={owned} />
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

function Summary({ one, score, over, owned }: { one: Entity; score: SearchItem | undefined; over: boolean; owned: boolean }) {
  return (
    <span class="row-text">
      <span class="row-name">{one.name}</span>
      {one.description && one.description !== one.name && <span class="row-more">{one.description}</span>}
      <span class="row-meta">
        <TypeChip type={one.entity_type} />
        {one.polarity === "negative" && <span class="chip bad">not so</span>}
        {over && <span class="chip">ended</span>}
        {owned && one.scope.external_subject_id && <span class="row-whose">{one.scope.external_subject_id}</span>}
      </span>
      {score && <Score item={score} />}
    </span>
  );
}

function Score({ item }: { item: SearchItem }) {
  const shown = (value: number) => value.toFixed(2);
  return (
    <span class="score">
      <meter min={0} max={1} value={item.score} aria-label="Score" />
      <span class="score-figures">
        <b>{shown(item.score)}</b> · likeness {shown(item.similarity)} · recency {shown(item.recency)} · by {item.matched_by.join(", ")}
      </span>
    </span>
  );
}

export function Pager({ page, size, total, onPage }: { page: number; size: number; total: number; onPage: (page: number) => void }) {
  const pages = Math.max(1, Math.ceil(total / size));
  if (pages === 1) return null;
  return (
    <nav class="pager" aria-label="Pages of the list">
      <button type="button" disabled={page <= 1} onClick={() => onPage(page - 1)}>
        Previous
      </button>
      <span>
        Page {page} of {pages}
      </span>
      <button type="button" disabled={page >= pages} onClick={() => onPage(page + 1)}>
        Next
      </button>
    </nav>
  );
}

export function NothingFound({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <Empty title="No memory matches">Try another word, or fewer types.</Empty>
  ) : (
    <Empty title="Nothing is remembered here yet">
      What is said in conversations shows up here once it has been learned. If nothing ever does, memory may be off for this tenant or
      agent.
    </Empty>
  );
}
