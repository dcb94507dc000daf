import { type KeyboardEvent, type ReactNode, useRef } from 'react';
import { NotesTab } from './NotesTab.tsx';
import { OutcomeTab } from './OutcomeTab.tsx';
import type { PanelProps } from './panel-props.ts';
import { RawTab } from './RawTab.tsx';
import { TaskTab } from './TaskTab.tsx';
import { ToolsTab } from './ToolsTab.tsx';

const tabs = ['outcome', 'task', 'tools', 'raw', 'notes'] as const;
export type Tab = (typeof tabs)[number];
export const tabOf = (text: string | undefined): Tab | undefined => tabs.find((tab) => tab === text);
const panels = { outcome: OutcomeTab, task: TaskTab, tools: ToolsTab, raw: RawTab, notes: NotesTab };

interface SidePanelProps extends PanelProps {
  tab: Tab | undefined;
  choose: (tab: Tab | undefined) => void;
  /** The transcript, in a window that has no space for both: it is the first tab then. */
  transcript?: ReactNode;
}

/** The panel beside the transcript, or in its place: outcome, task, tools, raw events, annotations. */
export function SidePanel({ tab, choose, transcript, ...props }: SidePanelProps) {
  const list = useRef<HTMLDivElement>(null);
  const names = transcript === undefined ? tabs : (['transcript', ...tabs] as const);
  const first = names[0];
  const current = tab ?? first;
  const open = (name: (typeof names)[number]) => choose(name === 'transcript' || name === first ? undefined : name);
  const onKeyDown = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const next = names[(names.indexOf(current as never) + by + names.length) % names.length]!;
    open(next);
    list.current?.querySelector<HTMLElement>(`[data-tab=${next}]`)?.focus();
  };
  const Panel = current === 'transcript' ? null : panels[current];
  return (
    <aside
      aria-label="About this rollout"
      className="grid min-h-0 min-w-0 flex-1 grid-rows-[34px_minmax(0,1fr)] min-[1121px]:border-l min-[1121px]:border-line"
      data-screen-only={transcript === undefined ? true : undefined}
    >
      <div
        ref={list}
        role="tablist"
        aria-label="About this rollout"
        className="flex min-w-0 overflow-x-auto border-b border-line px-[6px]"
        data-screen-only
        onKeyDown={onKeyDown}
      >
        {names.map((name) => (
          <button
            key={name}
            type="button"
            role="tab"
            data-tab={name}
            id={`tab-${name}`}
            aria-selected={name === current}
            aria-controls="side-panel"
            tabIndex={name === current ? 0 : -1}
            onClick={() => open(name)}
            className="flex-none border-b-2 border-transparent px-2 text-ink-2 hover:text-ink-1 aria-selected:border-accent aria-selected:font-[550] aria-selected:text-ink-1"
          >
            {name === 'notes' && props.annotations.length > 0
              ? `Notes ${props.annotations.length}`
              : name[0]!.toUpperCase() + name.slice(1)}
          </button>
        ))}
      </div>
      <div
        role="tabpanel"
        id="side-panel"
        aria-labelledby={`tab-${current}`}
        tabIndex={Panel ? 0 : undefined}
        className={Panel ? 'min-h-0 overflow-auto' : 'grid min-h-0'}
      >
        {Panel ? <Panel {...props} /> : transcript}
      </div>
    </aside>
  );
}
