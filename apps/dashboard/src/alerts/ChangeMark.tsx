/** `▲ firing` or `✓ resolved`. */
export function ChangeMark({ kind }: { kind: 'firing' | 'resolved' }) {
  return kind === 'firing' ? (
    <span className="flex-none whitespace-nowrap text-bad">
      <span aria-hidden="true">▲</span> firing
    </span>
  ) : (
    <span className="flex-none whitespace-nowrap text-good">
      <span aria-hidden="true">✓</span> resolved
    </span>
  );
}
