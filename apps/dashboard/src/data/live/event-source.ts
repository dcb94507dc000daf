/** Pause before a stream is opened again that the browser has given up. */
const REOPEN_MS = 5_000;

/**
 * Opens an event stream, and again when the browser has given up: it does so when a proxy answers in place of a service that starts.
 * `listen` is called for each. Returns a function that closes the stream.
 */
export function openEventSource(url: string, listen: (source: EventSource) => void): () => void {
  let source: EventSource;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const open = () => {
    source = new EventSource(url);
    listen(source);
    source.addEventListener('error', () => {
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, REOPEN_MS);
    });
  };
  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}
