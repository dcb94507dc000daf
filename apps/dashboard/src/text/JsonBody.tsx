import { useMemo, useState } from 'react';
import { useFindText } from './find-context.ts';
import { findInTree } from './json-tree.ts';
import { JsonTree } from './JsonTree.tsx';
import { PlainText } from './PlainText.tsx';

/**
 * JSON text as a tree. A button shows the text as it was sent. A search opens the parts with a hit; if only the text has it, for example
 * `"a": 1` with its quotes, the text is shown.
 */
export function JsonBody({ text, value, openLevels = 2 }: { text: string; value: object; openLevels?: number }) {
  const find = useFindText();
  const hits = useMemo(() => findInTree(value, find), [value, find]);
  const onlyInText = find !== '' && hits.size === 0 && text.toLowerCase().includes(find.toLowerCase());
  const [chosen, setChosen] = useState<{ raw: boolean; find: string } | null>(null);
  const raw = chosen && (!onlyInText || chosen.find === find) ? chosen.raw : onlyInText;
  return (
    <div className="group/json">
      <button
        type="button"
        className="link relative z-[1] float-right bg-paper-0 pl-2 font-sans text-[11px]"
        aria-pressed={raw}
        onClick={() => setChosen({ raw: !raw, find })}
      >
        {raw ? 'Show as tree' : 'Show as sent'}
      </button>
      {raw ? (
        <div className="mono whitespace-pre-wrap break-words">
          <PlainText text={text} />
        </div>
      ) : (
        <JsonTree value={value} openLevels={openLevels} hits={hits} />
      )}
    </div>
  );
}
