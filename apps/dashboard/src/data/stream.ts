/**
 * Follows only while the reader looks at the page: a browser has six connections to one origin over HTTP/1.1, and a stream holds one of
 * them in every tab. Returns the function that stops it.
 */
export function whileVisible(follow: () => () => void): () => void {
  let stop: (() => void) | undefined;
  const update = () => {
    if (document.visibilityState === 'visible') stop ??= follow();
    else {
      stop?.();
      stop = undefined;
    }
  };
  document.addEventListener('visibilitychange', update);
  update();
  return () => {
    document.removeEventListener('visibilitychange', update);
    stop?.();
  };
}
