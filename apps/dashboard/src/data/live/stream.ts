/**
 * Calls `follow` while the page is visible: over HTTP/1.1 a browser has six connections to one origin, and a stream uses one of them in every
 * tab. Returns a function that stops it.
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
