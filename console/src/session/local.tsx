import { useEffect, useState } from "preact/hooks";

import { Api, problemOf } from "../api/client";
import type { Tenant } from "../api/types";
import { Field, ProblemNotice } from "../ui/parts";
import { useAction } from "../ui/use-action";
import type { Role } from "./session";

const LOCAL = ["localhost", "127.0.0.1", "[::1]"];

async function mint(sub: string, role: Role, tenantId: string | null): Promise<string> {
  const answer = await fetch("/local/tokens", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ sub, role, ...(tenantId ? { tenant_id: tenantId } : {}) }),
  });
  if (!answer.ok) throw await problemOf(answer);
  return ((await answer.json()) as { token: string }).token;
}

/** On the local edge anybody may sign in as anybody. Renders nothing elsewhere, where no such route answers. */
export function LocalSignIn({ onToken }: { onToken: (token: string) => Promise<void> }) {
  const [tenants, setTenants] = useState<Tenant[] | null>(null);
  const [name, setName] = useState("ada");
  const [role, setRole] = useState<Role>("admin");
  const [tenant, setTenant] = useState("");
  const { problem, run } = useAction();

  useEffect(() => {
    if (!LOCAL.includes(location.hostname)) return;
    void (async () => {
      try {
        const found = await new Api(await mint("console", "platform", null)).all<Tenant>("/tenants");
        setTenants(found.filter((one) => one.state === "active"));
        setTenant(found[0]?.id ?? "");
      } catch {
        setTenants(null);
      }
    })();
  }, []);

  if (tenants === null) return null;
  function submit(event: Event) {
    event.preventDefault();
    void run(async () => onToken(await mint(name, role, role === "platform" ? null : tenant)));
  }
  return (
    <form class="card stack" onSubmit={submit} aria-labelledby="local-title">
      <div>
        <h2 id="local-title">Sign in as</h2>
        <p class="muted">Only on this machine: the local stack signs a token for whoever you name.</p>
      </div>
      <Field label="Name">
        {(id) => <input id={id} required maxLength={256} value={name} onInput={(e) => setName(e.currentTarget.value)} />}
      </Field>
      <Field label="Role">
        {(id) => (
          <select id={id} value={role} onChange={(e) => setRole(e.currentTarget.value as Role)}>
            <option value="admin">Administrator of a tenant</option>
            <option value="member">Member of a tenant</option>
            <option value="platform">Platform administrator</option>
          </select>
        )}
      </Field>
      {role !== "platform" && (
        <Field label="Tenant">
          {(id) => (
            <select id={id} value={tenant} onChange={(e) => setTenant(e.currentTarget.value)}>
              {tenants.map((one) => (
                <option key={one.id} value={one.id}>
                  {one.name}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      {problem && <ProblemNotice problem={problem} />}
      <button type="submit">Sign in as {name || "…"}</button>
    </form>
  );
}
