/** `▲ Firing` or `✓ Resolved`. */
export function ChangeMark({ kind }: { kind: 'firing' | 'resolved' }) {
  return kind === 'firing' ? (
    <span className="flex-none whitespace-nowrap text-bad">
      <span aria-hidden="true">▲</span> Firing
    </span>
  ) : (
    <span className="flex-none whitespace-nowrap text-good">
      <span aria-hidden="true">✓</span> Resolved
    </span>
  );
}
