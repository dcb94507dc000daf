import { useCallback, useRef } from 'react';
import { useKeys } from './keyboard.ts';

const groups: [string, [string, string][]][] = [
  ['Everywhere', [['?', 'this list']]],
  [
    'Lists',
    [
      ['j k', 'next, previous row'],
      ['Enter', 'open the row'],
    ],
  ],
  [
    'Session',
    [
      ['j k', 'next, previous call'],
      ['Enter', 'open or close the call'],
      ['Esc', 'back to the sessions'],
    ],
  ],
  [
    'Rollout',
    [
      ['j k', 'next, previous turn'],
      ['J K', 'next, previous reward'],
      ['[ ]', 'previous, next rollout of the run'],
      ['g g  G', 'start, end'],
      ['e', 'open or close what is folded'],
      ['y', 'copy a link to this message'],
      ['Esc', 'back to the run'],
    ],
  ],
];

export function HelpDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = useCallback(() => dialog.current?.showModal(), []);
  useKeys({ '?': open });
  return (
    <>
      <button
        type="button"
        onClick={open}
        className="grid size-[28px] place-items-center rounded-[4px] hover:bg-paper-2"
        aria-label="Keyboard shortcuts"
      >
        <kbd>?</kbd>
      </button>
      <dialog
        ref={dialog}
        aria-label="Keyboard shortcuts"
        className="m-auto w-[420px] rounded-[4px] border border-line-strong bg-paper-0 p-4 text-ink-1 shadow-xl backdrop:bg-ink-3/40"
        onClick={(event) => event.target === dialog.current && dialog.current.close()}
      >
        {groups.map(([title, rows]) => (
          <section key={title} className="mb-3">
            <h2 className="label mb-1">{title}</h2>
            {rows.map(([keyNames, what]) => (
              <div key={keyNames} className="grid h-[24px] grid-cols-[96px_1fr] items-center">
                <span className="flex gap-1">
                  {keyNames.split(/\s+/).map((name, i) => (
                    <kbd key={i}>{name}</kbd>
                  ))}
                </span>
                <span>{what}</span>
              </div>
            ))}
          </section>
        ))}
        <form method="dialog">
          <button type="submit" className="button">
            Close
          </button>
        </form>
      </dialog>
    </>
  );
}
