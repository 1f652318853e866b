import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import type { Api } from "../api/client";
import type { Agent, Tenant } from "../api/types";
import { useLoaded } from "../memories/use-memories";
import type { Claims } from "../session/session";
import { Empty, Field, Loading, ProblemNotice } from "../ui/parts";
import { applied, changes, type FieldSpec } from "./fields";
import { SettingsForm, type Group } from "./form";
import { AGENT, SITE, TENANT } from "./tables";

const fieldsOf = (groups: readonly Group[]): FieldSpec[] => groups.flatMap((one) => one.fields);

/** A partial change: only what the draft gives another value. */
function patchOf(groups: readonly Group[]) {
  return (stored: Parameters<typeof changes>[0], draft: Parameters<typeof changes>[1]) => {
    const body = changes(stored, draft, fieldsOf(groups));
    return Object.keys(body).length ? body : null;
  };
}

function Page({ title, lead, children }: { title: string; lead: string; children: ComponentChildren }) {
  return (
    <main class="settings-page">
      <div class="page-head">
        <h1>{title}</h1>
      </div>
      <p class="muted lead">{lead}</p>
      {children}
    </main>
  );
}

export function SiteSettingsPage({ api }: { api: Api }) {
  return (
    <Page title="Site Settings › Memory" lead="What tenants inherit that set nothing of their own.">
      <SettingsForm
        api={api}
        path="/admin/site-settings"
        query={{ category: "memory" }}
        method="PUT"
        groups={SITE}
        bodyOf={(stored, draft) =>
          Object.keys(changes(stored, draft, fieldsOf(SITE))).length ? applied(stored, draft, fieldsOf(SITE)) : null
        }
      />
    </Page>
  );
}

/** The administrator's own tenant, or for the platform's one of all. */
export function TenantMemoryPage({ api, claims }: { api: Api; claims: Claims }) {
  const platform = claims.role === "platform";
  const [chosen, setChosen] = useState<string | null>(claims.tenantId);
  const tenants = useLoaded(platform ? () => api.all<Tenant>("/tenants") : null, [api]);
  const tenant = chosen ?? tenants.value?.[0]?.id ?? null;
  return (
    <Page title="Tenant › Memory" lead="Whether and how memory works for everybody of this tenant. A change holds from the next request.">
      {tenants.problem && <ProblemNotice problem={tenants.problem} />}
      {tenants.loading && <Loading what="tenants" />}
      {platform && tenants.value && (
        <Field label="Tenant">
          {(id) => (
            <select id={id} value={tenant ?? ""} onChange={(e) => setChosen(e.currentTarget.value)}>
              {tenants.value?.map((one) => (
                <option key={one.id} value={one.id}>
                  {one.name} ({one.id})
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      {tenant && (
        <SettingsForm
          api={api}
          path={`/tenants/${encodeURIComponent(tenant)}/memory-settings`}
          method="PATCH"
          groups={TENANT}
          bodyOf={patchOf(TENANT)}
        />
      )}
      {platform && tenants.value?.length === 0 && <Empty title="There is no tenant yet" />}
    </Page>
  );
}

export function AgentsPage({ api }: { api: Api }) {
  const agents = useLoaded(() => api.all<Agent>("/agents"), [api]);
  const [chosen, setChosen] = useState<string | null>(null);
  const agent = chosen ?? agents.value?.find((one) => one.is_default)?.id ?? agents.value?.[0]?.id ?? null;
  return (
    <Page title="Agents › Memory" lead="Memory works where the tenant's memory is durable and the agent has it enabled.">
      {agents.problem && <ProblemNotice problem={agents.problem} />}
      {agents.loading && !agents.value && <Loading what="agents" />}
      {agents.value && agents.value.length > 0 && (
        <Field label="Agent">
          {(id) => (
            <select id={id} value={agent ?? ""} onChange={(e) => setChosen(e.currentTarget.value)}>
              {agents.value?.map((one) => (
                <option key={one.id} value={one.id}>
                  {one.name}
                  {one.is_default ? " (default)" : ""}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      {agents.value?.length === 0 && <Empty title="There is no agent">Agents are made over the API.</Empty>}
      {agent && (
        <SettingsForm api={api} path={`/agents/${encodeURIComponent(agent)}`} method="PATCH" groups={AGENT} bodyOf={patchOf(AGENT)} />
      )}
    </Page>
  );
}
