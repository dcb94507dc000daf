import { openHelp } from '../frame/HelpDialog.tsx';
import { keyOf, useKeymap } from '../frame/keymap.ts';
import { Panel } from './parts.tsx';

/** Opens the keyboard map and lists the changed keys. */
export function KeyboardTab() {
  const changed = Object.entries(useKeymap());
  return (
    <Panel title="Keyboard" about="You can use every page without a mouse. The keyboard map lists the keys and can change them.">
      <div className="flex items-center gap-3">
        <button type="button" className="button" onClick={openHelp} aria-keyshortcuts={keyOf('?')}>
          <kbd>{keyOf('?')}</kbd> Open the keyboard map
        </button>
        <span className="text-ink-3">
          {changed.length === 0
            ? 'All keys have their default.'
            : `Changed in this browser: ${changed.map(([command, key]) => `${command} is ${key}`).join(', ')}`}
        </span>
      </div>
    </Panel>
  );
}
