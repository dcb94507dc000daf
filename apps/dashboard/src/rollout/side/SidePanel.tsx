import { useNavigate } from '@tanstack/react-router';
import { type KeyboardEvent, useRef } from 'react';
import { NotesTab } from './NotesTab.tsx';
import { OutcomeTab } from './OutcomeTab.tsx';
import type { PanelProps } from './panel-props.ts';
import { RawTab } from './RawTab.tsx';
import { TaskTab } from './TaskTab.tsx';
import { ToolsTab } from './ToolsTab.tsx';

const tabs = ['outcome', 'task', 'tools', 'raw', 'notes'] as const;
export type Tab = (typeof tabs)[number];
export const tabOf = (text: string | undefined): Tab => tabs.find((tab) => tab === text) ?? 'outcome';
const panels = { outcome: OutcomeTab, task: TaskTab, tools: ToolsTab, raw: RawTab, notes: NotesTab };

/** The panel beside the transcript: outcome, task, tools, raw events, annotations. */
export function SidePanel({ tab, ...props }: PanelProps & { tab: Tab }) {
  const navigate = useNavigate();
  const list = useRef<HTMLDivElement>(null);
  const choose = (to: Tab) =>
    void navigate({
      to: '.',
      search: (old: object) => ({ ...old, tab: to === 'outcome' ? undefined : to }) as never,
      hash: location.hash.slice(1),
      replace: true,
      hashScrollIntoView: false,
    });
  const onKeyDown = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length]!;
    choose(next);
    list.current?.querySelector<HTMLElement>(`[data-tab=${next}]`)?.focus();
  };
  const Panel = panels[tab];
  return (
    <aside aria-label="About this rollout" className="grid min-h-0 grid-rows-[34px_minmax(0,1fr)] border-l border-line" data-screen-only>
      <div ref={list} role="tablist" aria-label="About this rollout" className="flex border-b border-line px-[6px]" onKeyDown={onKeyDown}>
        {tabs.map((name) => (
          <button
            key={name}
            type="button"
            role="tab"
            data-tab={name}
            id={`tab-${name}`}
            aria-selected={name === tab}
            aria-controls="side-panel"
            tabIndex={name === tab ? 0 : -1}
            onClick={() => choose(name)}
            className="border-b-2 border-transparent px-2 text-ink-2 hover:text-ink-1 aria-selected:border-accent aria-selected:font-[550] aria-selected:text-ink-1"
          >
            {name === 'notes' && props.annotations.length > 0
              ? `Notes ${props.annotations.length}`
              : name[0]!.toUpperCase() + name.slice(1)}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="side-panel" aria-labelledby={`tab-${tab}`} tabIndex={0} className="min-h-0 overflow-auto">
        <Panel {...props} />
      </div>
    </aside>
  );
}
