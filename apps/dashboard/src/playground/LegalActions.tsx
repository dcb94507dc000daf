import { type JsonValue, stringifyJson } from '@palestra/protocol';
import { PlainText } from '../text/PlainText.tsx';
import { legalLabel, MAX_LEGAL } from './action-environment.ts';

interface LegalProps {
  legal: readonly JsonValue[];
  disabled: boolean;
  /** Whether exactly one member of the action can take the value. */
  fits: (legal: JsonValue) => boolean;
  onTake: (legal: JsonValue) => void;
}

/** Buttons for the legal actions of the last observation. */
export function LegalActions({ legal, disabled, fits, onTake }: LegalProps) {
  const shown = legal.slice(0, MAX_LEGAL);
  const usable = shown.some(fits);
  return (
    <div role="group" aria-label="Legal actions">
      <p className="label mb-1">
        {legal.length === 1 ? '1 legal action' : `${legal.length} legal actions`}
        {usable ? '. Click one to take it.' : '. The field for them is unknown.'}
      </p>
      <div className="flex max-h-[124px] flex-wrap gap-1 overflow-y-auto" tabIndex={usable ? undefined : 0}>
        {shown.map((action, index) => (
          <button
            key={index}
            type="button"
            className="button mono min-w-[28px] justify-center px-[8px]"
            disabled={disabled || !fits(action)}
            title={stringifyJson(action).slice(0, 300)}
            onClick={() => onTake(action)}
          >
            <PlainText text={legalLabel(action)} />
          </button>
        ))}
        {legal.length > shown.length && (
          <span className="label self-center">And {legal.length - shown.length} more, which you can enter in the form</span>
        )}
      </div>
    </div>
  );
}
