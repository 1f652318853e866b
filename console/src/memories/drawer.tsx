import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import type { Answer, Api } from "../api/client";
import type { Entity, EntityView } from "../api/types";
import { Close } from "../ui/icons";
import { Loading, ProblemNotice, Time } from "../ui/parts";
import { EditForm } from "./edit";
import { History } from "./history";
import { TypeChip } from "./list";
import { Sources } from "./provenance";
import { Relations } from "./relations";
import { plural, validity } from "./rules";
import { useLoaded } from "./use-memories";

interface Props {
  api: Api;
  id: string;
  times: number;
  names: ReadonlyMap<string, Entity>;
  onOpen: (id: string) => void;
  onClose: () => void;
  onFocus: (entity: Entity) => void;
  onDelete: (id: string) => void;
  onChanged: () => void;
}

export function Drawer(props: Props) {
  const { api, id, times, onClose } = props;
  const path = `/memories/entities/${encodeURIComponent(id)}`;
  const [again, setAgain] = useState<Answer<EntityView> | null>(null);
  const loaded = useLoaded((signal) => api.send<EntityView>("GET", path, { signal }), [api, id, times]);
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => setAgain(null), [id, times]);
  const shown = again ?? loaded.value;
  const current = shown && shown.body.entity.id === id ? shown : null;
  useEffect(() => head.current?.focus(), [id, current !== null]);
  return (
    <aside
      class="drawer"
      aria-label="Memory"
      onKeyDown={(event) => event.key === "Escape" && !(event.target instanceof HTMLTextAreaElement) && onClose()}
    >
      <header class="drawer-head">
        <div>
          {current && <TypeChip type={current.body.entity.entity_type} />}
          <h2 ref={head} tabIndex={-1}>
            {current ? current.body.entity.name : "Memory"}
          </h2>
        </div>
        <button type="button" class="quiet square" aria-label="Close the drawer" onClick={onClose}>
          <Close />
        </button>
      </header>
      {loaded.problem && <ProblemNotice problem={loaded.problem} />}
      {!current && loaded.loading && <Loading what="the memory" />}
      {current && !loaded.problem && (
        <Memory key={id} {...props} shown={current} onReload={async () => setAgain(await api.send<EntityView>("GET", path))} />
      )}
    </aside>
  );
}

function Memory({
  api,
  shown,
  names,
  onOpen,
  onFocus,
  onDelete,
  onChanged,
  onReload,
}: Props & { shown: Answer<EntityView>; onReload: () => Promise<void> }) {
  const [editing, setEditing] = useState(false);
  const { entity } = shown.body;
  return (
    <div class="drawer-body">
      <section class="drawer-part">
        {editing ? (
          <EditForm
            api={api}
            entity={entity}
            etag={shown.etag}
            onReload={onReload}
            onCancel={() => setEditing(false)}
            onSaved={() => {
              setEditing(false);
              onChanged();
            }}
          />
        ) : (
          <>
            {entity.description ? <p class="description">{entity.description}</p> : <p class="muted">No description.</p>}
            <h3>Properties</h3>
            {Object.keys(entity.properties).length ? (
              <pre class="code">{JSON.stringify(entity.properties, null, 2)}</pre>
            ) : (
              <p class="muted">None.</p>
            )}
            <div class="buttons">
              <button type="button" onClick={() => setEditing(true)}>
                Edit
              </button>
              <button type="button" onClick={() => onFocus(entity)}>
                Show neighbours
              </button>
              <button type="button" class="danger-quiet" onClick={() => onDelete(entity.id)}>
                Delete
              </button>
            </div>
          </>
        )}
      </section>
      <Facts entity={entity} />
      <Relations api={api} view={shown.body} names={names} onOpen={onOpen} onChanged={onChanged} />
      <Sources sources={entity.provenance} />
      <History api={api} entity={entity} onChanged={onChanged} />
    </div>
  );
}

function Facts({ entity }: { entity: Entity }) {
  return (
    <dl class="facts">
      <Fact name="Polarity">{entity.polarity === "negative" ? <span class="chip bad">negative: it is not so</span> : "positive"}</Fact>
      <Fact name="Valid">{validity(entity.valid_from, entity.valid_to)}</Fact>
      {entity.expires_at && (
        <Fact name="Forgotten at">
          <Time at={entity.expires_at} />
        </Fact>
      )}
      {entity.subject && (
        <Fact name="About">{entity.subject.kind === "user" ? "the user" : (entity.subject.name ?? "another memory")}</Fact>
      )}
      <Fact name="Belongs to">{entity.scope.external_subject_id ?? entity.scope.knowledge_base_id ?? "the tenant"}</Fact>
      {entity.aliases.length > 0 && <Fact name="Also called">{entity.aliases.join(", ")}</Fact>}
      <Fact name="Recalled">
        {entity.access_count === 0 || !entity.last_accessed_at ? (
          "never"
        ) : (
          <>
            {plural(entity.access_count, "time")}, last <Time at={entity.last_accessed_at} />
          </>
        )}
      </Fact>
      <Fact name="Changed">
        <Time at={entity.updated_at} /> (version {entity.version})
      </Fact>
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
