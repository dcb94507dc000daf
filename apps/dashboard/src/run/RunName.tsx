import { PlainText } from '../text/PlainText.tsx';

/** Names of runs often differ at their ends only. */
const TAIL = 28;
/** Shorter names are not split. */
const LONG = 40;

/** The name of a run. Where it does not fit, its middle is left out. Its parent names it for screen readers. */
export function RunName({ name }: { name: string }) {
  if (name.length <= LONG) return <PlainText text={name} />;
  return (
    <span className="flex min-w-0" title={name}>
      <span className="truncate">
        <PlainText text={name.slice(0, -TAIL)} />
      </span>
      <span className="flex-none whitespace-pre">
        <PlainText text={name.slice(-TAIL)} />
      </span>
    </span>
  );
}
