import { type JsonValue, stringifyJson } from '@palestra/protocol';
import { PlainText } from '../text/PlainText.tsx';
import { legalLabel, MAX_LEGAL } from './episode.ts';

interface LegalProps {
  legal: readonly JsonValue[];
  off: boolean;
  /** Whether it is known which member of the action takes it. */
  takes: (legal: JsonValue) => boolean;
  onTake: (legal: JsonValue) => void;
}

/** What the last observation says may be done, each one click away. */
export function LegalActions({ legal, off, takes, onTake }: LegalProps) {
  const shown = legal.slice(0, MAX_LEGAL);
  const known = shown.some(takes);
  return (
    <div role="group" aria-label="Legal actions">
      <p className="label mb-1">
        {legal.length === 1 ? '1 legal action' : `${legal.length} legal actions`}
        {known ? ', taken by one click' : '; which field takes them is not known'}
      </p>
      <div className="flex max-h-[124px] flex-wrap gap-1 overflow-y-auto" tabIndex={known ? undefined : 0}>
        {shown.map((one, index) => (
          <button
            key={index}
            type="button"
            className="button mono min-w-[28px] justify-center px-[8px]"
            disabled={off || !takes(one)}
            title={stringifyJson(one).slice(0, 300)}
            onClick={() => onTake(one)}
          >
            <PlainText text={legalLabel(one)} />
          </button>
        ))}
        {legal.length > shown.length && (
          <span className="label self-center">and {legal.length - shown.length} more: write them in the form</span>
        )}
      </div>
    </div>
  );
}
