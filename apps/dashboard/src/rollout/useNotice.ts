import { useEffect, useState } from 'react';

const NOTICE_MS = 2_500;

/** A short message that disappears by itself. */
export function useNotice(): [text: string, notify: (text: string) => void] {
  const [notice, notify] = useState('');
  useEffect(() => {
    if (notice === '') return;
    const timer = setTimeout(() => notify(''), NOTICE_MS);
    return () => clearTimeout(timer);
  }, [notice]);
  return [notice, notify];
}
