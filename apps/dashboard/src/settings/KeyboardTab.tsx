import { openHelp } from '../frame/HelpDialog.tsx';
import { keyOf, useKeymap } from '../frame/keymap.ts';
import { Panel } from './parts.tsx';

/** The way to the keyboard map, and how much of it the reader has changed. */
export function KeyboardTab() {
  const changed = Object.entries(useKeymap());
  return (
    <Panel
      title="Keyboard"
      about="Every page can be used without a mouse. The map opens anywhere with its key, and keys are changed in it."
    >
      <div className="flex items-center gap-3">
        <button type="button" className="button" onClick={openHelp} aria-keyshortcuts={keyOf('?')}>
          <kbd>{keyOf('?')}</kbd> Open the keyboard map
        </button>
        <span className="text-ink-3">
          {changed.length === 0
            ? 'All keys are as they came.'
            : `Changed in this browser: ${changed.map(([was, is]) => `${was} is ${is}`).join(', ')}`}
        </span>
      </div>
    </Panel>
  );
}
