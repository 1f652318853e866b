import type { ComponentChildren } from "preact";

function Icon({ children }: { children: ComponentChildren }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      stroke-width="1.6"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

export const Mark = () => (
  <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" />
    <path d="M6 13c3.3-3.4 6.7-3.4 10 0s6.7 3.4 10 0M6 20c3.3-3.4 6.7-3.4 10 0s6.7 3.4 10 0" />
  </svg>
);
export const Plus = () => (
  <Icon>
    <path d="M10 4v12M4 10h12" />
  </Icon>
);
export const Minus = () => (
  <Icon>
    <path d="M4 10h12" />
  </Icon>
);
export const Fit = () => (
  <Icon>
    <path d="M3 7V3h4M13 3h4v4M17 13v4h-4M7 17H3v-4" />
  </Icon>
);
export const Close = () => (
  <Icon>
    <path d="M5 5l10 10M15 5L5 15" />
  </Icon>
);
export const Search = () => (
  <Icon>
    <circle cx="9" cy="9" r="5.5" />
    <path d="M13.2 13.2L17 17" />
  </Icon>
);
export const Bin = () => (
  <Icon>
    <path d="M3.5 5.5h13M8 5.5V3.5h4v2M5.5 5.5l.7 11h7.6l.7-11" />
  </Icon>
);
export const Refresh = () => (
  <Icon>
    <path d="M16 10a6 6 0 1 1-1.8-4.3M16 3v3.5h-3.5" />
  </Icon>
);
