import { useEffect, useState } from 'react';

/** A button that copies a text, which can be loaded first. */
export function CopyLink({ label, name, text }: { label: string; name?: string; text: () => Promise<string> | string }) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  useEffect(() => {
    if (state === 'idle') return;
    const timer = setTimeout(() => setState('idle'), 1_500);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(await text());
      setState('copied');
    } catch {
      // A page without HTTPS has no clipboard.
      setState('failed');
    }
  };
  return (
    <button type="button" className="link" title={name} aria-label={name} onClick={() => void copy()}>
      {state === 'copied' ? 'Copied' : state === 'failed' ? 'Copying is not allowed' : label}
    </button>
  );
}
