/** What is missing in an empty chart, and the line of code that sends it. */
export function HowTo({ missing, send }: { missing: string; send: string }) {
  return (
    <>
      <span>{missing}</span>
      <code className="truncate text-ink-2" title={send}>
        {send}
      </code>
    </>
  );
}
