import { useState } from "preact/hooks";

import { ENTITY_TYPES, type EntityType } from "../api/types";
import { Search } from "../ui/icons";
import { Segments } from "../ui/parts";
import type { Filter } from "./use-memories";

const MODES = [
  { value: "keyword", label: "Keyword" },
  { value: "meaning", label: "Meaning" },
] as const;

export function Toolbar({ filter, onFilter }: { filter: Filter; onFilter: (filter: Filter) => void }) {
  const [words, setWords] = useState(filter.words);
  const asks = filter.mode === "meaning";
  // Words are looked up while they are typed; a question is asked once it stands.
  function typed(text: string) {
    setWords(text);
    if (!asks) onFilter({ ...filter, words: text, page: 1 });
  }
  function toggle(type: EntityType) {
    const types = filter.types.includes(type) ? filter.types.filter((one) => one !== type) : [...filter.types, type];
    onFilter({ ...filter, types, page: 1 });
  }
  return (
    <search class="toolbar">
      <form
        class="search"
        onSubmit={(event) => {
          event.preventDefault();
          onFilter({ ...filter, words, page: 1 });
        }}
      >
        <Segments
          label="How to search"
          options={MODES}
          value={filter.mode}
          onChange={(mode) => onFilter({ ...filter, mode, words, page: 1 })}
        />
        <div class="search-box">
          <Search />
          <input
            type="search"
            aria-label={asks ? "Question" : "Keyword"}
            placeholder={asks ? "Ask in your own words, then Enter" : "Name or description"}
            maxLength={1000}
            value={words}
            onInput={(event) => typed(event.currentTarget.value)}
          />
        </div>
        {asks && (
          <button type="submit" class="primary">
            Search
          </button>
        )}
      </form>
      <div class="types" role="group" aria-label="Types">
        {ENTITY_TYPES.map((type) => (
          <button
            key={type}
            type="button"
            class={`type-filter type-${type}`}
            aria-pressed={filter.types.includes(type)}
            onClick={() => toggle(type)}
          >
            {type}
          </button>
        ))}
        {filter.types.length > 0 && (
          <button type="button" class="link" onClick={() => onFilter({ ...filter, types: [], page: 1 })}>
            All types
          </button>
        )}
      </div>
    </search>
  );
}
