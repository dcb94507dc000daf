export function ProgressBar({ label, part, whole }: { label: string; part: number; whole: number }) {
  const percent = whole === 0 ? 0 : Math.round((part / whole) * 100);
  return (
    <div
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={percent}
      className="h-[4px] min-h-[4px] w-full min-w-[40px] rounded-[2px] bg-paper-2"
    >
      <div className="h-full rounded-[2px] bg-good" style={{ width: `${percent}%` }} />
    </div>
  );
}
