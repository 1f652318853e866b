import { useEffect, useMemo, useState } from "preact/hooks";

import { Api } from "./api/client";
import { MemoriesPage } from "./memories/page";
import { claimsOf, keep, kept, scopeQuery, type Claims, type Session } from "./session/session";
import { SignIn } from "./session/sign-in";
import { AgentsPage, SiteSettingsPage, TenantMemoryPage } from "./settings/pages";
import { Mark } from "./ui/icons";
import { Toasts } from "./ui/toast";

type PageName = "memories" | "tenant" | "agents" | "site";
const TITLES: Record<PageName, string> = { memories: "My Memories", tenant: "Tenant", agents: "Agents", site: "Site Settings" };

/** What a role may open. The service refuses the rest by itself; what it would refuse is not offered. */
function pagesOf(claims: Claims): PageName[] {
  if (claims.role === "platform") return ["site", "tenant"];
  return claims.role === "admin" ? ["memories", "tenant", "agents"] : ["memories"];
}

/** The page that the address names: `#agents`. Nothing else ever stands in it. */
function usePlace(): string {
  const [place, setPlace] = useState(location.hash.slice(1));
  useEffect(() => {
    const moved = () => setPlace(location.hash.slice(1));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return place;
}

export function App() {
  const [session, setSession] = useState<Session | null>(kept);
  const [ended, setEnded] = useState(false);
  function begin(next: Session) {
    keep(next);
    setEnded(false);
    setSession(next);
  }
  function end(refused: boolean) {
    keep(null);
    setEnded(refused);
    setSession(null);
    history.replaceState(null, "", location.pathname);
  }
  if (!session) return <SignIn ended={ended} onSession={begin} />;
  return (
    <Toasts>
      <SignedIn session={session} onSession={begin} onEnd={end} />
    </Toasts>
  );
}

function SignedIn({
  session,
  onSession,
  onEnd,
}: {
  session: Session;
  onSession: (session: Session) => void;
  onEnd: (refused: boolean) => void;
}) {
  const claims = useMemo(() => claimsOf(session.token), [session.token]);
  const api = useMemo(() => new Api(session.token, scopeQuery(session.scope), () => onEnd(true)), [session]);
  // Settings belong to the tenant or the platform: a person's scope would be a parameter that they do not have.
  const unscoped = useMemo(() => new Api(session.token, {}, () => onEnd(true)), [session.token]);
  const pages = pagesOf(claims);
  const place = usePlace();
  const page = pages.find((one) => one === place) ?? pages[0];
  useEffect(() => {
    document.title = `${page ? TITLES[page] : "Console"} · Tidemark`;
  }, [page]);
  return (
    <>
      <header class="topbar">
        <a class="brand" href="#memories">
          <Mark /> Tidemark
        </a>
        <nav aria-label="Pages">
          {pages.map((one) => (
            <a key={one} href={`#${one}`} aria-current={one === page ? "page" : undefined}>
              {TITLES[one]}
            </a>
          ))}
        </nav>
        <div class="who">
          <span title={claims.tenantId ?? undefined}>
            {claims.name}
            {claims.role && <span class="chip">{claims.role}</span>}
          </span>
          <button type="button" onClick={() => onEnd(false)}>
            Sign out
          </button>
        </div>
      </header>
      {page === "memories" && (
        <MemoriesPage api={api} claims={claims} scope={session.scope} onScope={(scope) => onSession({ ...session, scope })} />
      )}
      {page === "tenant" && <TenantMemoryPage api={unscoped} claims={claims} />}
      {page === "agents" && <AgentsPage api={unscoped} />}
      {page === "site" && <SiteSettingsPage api={unscoped} />}
    </>
  );
}
