import { useState } from 'react';

interface Panels {
  facets: boolean;
  preview: boolean;
}
const STORAGE = 'palestra.explorer.panels';
const NARROW_PX = 1100;
/** Below it a panel takes the whole width. */
const PHONE_PX = 640;

function read(): Panels {
  const fits = innerWidth >= NARROW_PX;
  try {
    const value = JSON.parse(localStorage.getItem(STORAGE) ?? '{}') as Partial<Record<keyof Panels, unknown>>;
    return { facets: value.facets !== false && innerWidth >= PHONE_PX, preview: value.preview !== false && fits };
  } catch {
    return { facets: true, preview: fits };
  }
}

/** The visible side panels. A preference of the reader, stored in the browser instead of the address. */
export function usePanels(): [Panels, (name: keyof Panels) => void] {
  const [panels, setPanels] = useState(read);
  const toggle = (name: keyof Panels) => {
    if (innerWidth < PHONE_PX) return setPanels({ facets: false, preview: false, [name]: !panels[name] });
    const next = { ...panels, [name]: !panels[name] };
    setPanels(next);
    try {
      localStorage.setItem(STORAGE, JSON.stringify(next));
    } catch {
      // Without storage the choice lasts until the page closes.
    }
  };
  return [panels, toggle];
}

/** A button that shows or hides a side panel. */
export function PanelToggle({ name, open, onToggle }: { name: keyof Panels; open: boolean; onToggle: () => void }) {
  const x = name === 'facets' ? 2.5 : 9.5;
  return (
    <button
      type="button"
      className="button w-[28px] justify-center px-0 aria-pressed:text-ink-1"
      aria-pressed={open}
      aria-label={name === 'facets' ? 'Facets' : 'Preview'}
      title={`${open ? 'Hide' : 'Show'} the ${name}`}
      onClick={onToggle}
    >
      <svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">
        <rect x="1" y="1.5" width="12" height="11" rx="1.5" fill="none" stroke="currentColor" strokeWidth="1.2" />
        <rect x={x} y="3" width="2" height="8" rx="0.5" fill={open ? 'currentColor' : 'none'} stroke="currentColor" strokeWidth="0.8" />
      </svg>
    </button>
  );
}
