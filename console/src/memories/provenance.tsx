import type { Provenance } from "../api/types";
import { Time } from "../ui/parts";

const TRUST: Record<Provenance["trust"], string> = {
  user: "said by the user",
  explicit: "asked to be remembered",
  assistant: "written by a model",
  import: "imported",
  api: "written by an application",
};

/** Who said it, in which words, how far that is trusted, and when. */
export function Sources({ sources }: { sources: readonly Provenance[] }) {
  return (
    <section class="drawer-part">
      <h3>
        Where it comes from <span class="count">{sources.length}</span>
      </h3>
      {sources.length === 0 && <p class="muted">No source is recorded.</p>}
      <ul class="sources">
        {sources.map((one, place) => (
          <li key={place}>
            {one.quote && <blockquote>{one.quote}</blockquote>}
            <p class="source-meta">
              {one.speaker && <b>{one.speaker}</b>}
              <span class="chip">{TRUST[one.trust]}</span>
              <Time at={one.recorded_at} />
            </p>
            {one.conversation_id && <p class="source-place">{[one.conversation_id, one.message_id].filter(Boolean).join(" · ")}</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}
