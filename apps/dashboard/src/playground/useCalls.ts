import { useQueryClient } from '@tanstack/react-query';
import type { SessionView } from '@palestra/protocol';
import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import type { PlayCall } from '../data/playground.ts';
import { type LinkState, SessionLink } from '../data/session-link.ts';
import { refreshSession } from '../data/sessions.ts';

const MIN_PING_MS = 5_000;
const MAX_PING_MS = 20_000;

/** The connection to a session while the page is open. It starts when the session is `loaded`. */
export function useSessionLink(sid: string, loaded: boolean): SessionLink {
  const client = useQueryClient();
  const [link] = useState(() => new SessionLink(client, sid));
  useEffect(() => (loaded ? link.start() : undefined), [link, loaded]);
  return link;
}

export const useLinkState = (link: SessionLink): LinkState => useSyncExternalStore(link.subscribe, link.state);

/** Sends pings while the page is open, so that the heartbeat timeout does not expire. The idle timeout of requests still can. */
export function useKeepAlive(session: SessionView | undefined, link: SessionLink): void {
  const { sid, live, heartbeat_timeout_s: heartbeat } = session ?? {};
  useEffect(() => {
    if (sid === undefined || !live || heartbeat === undefined) return;
    const intervalMs = Math.min(MAX_PING_MS, Math.max(MIN_PING_MS, (heartbeat * 1_000) / 3));
    const timer = setInterval(() => link.ping(), intervalMs);
    return () => clearInterval(timer);
  }, [sid, live, heartbeat, link]);
}

export interface Calls {
  busy: boolean;
  /** Why the last call got no answer; failures of the tool are in its result. */
  connectionError: string | null;
  /** Task ids of calls whose stored result was read after the connection broke. */
  replayed: ReadonlySet<string>;
  /** The task id of the reader's last call. */
  lastTaskId: string | null;
  call: (call: PlayCall) => void;
}

/** Calls tools of a session, one at a time. */
export function useCalls(link: SessionLink): Calls {
  const client = useQueryClient();
  const { sid } = link;
  const [busy, setBusy] = useState(false);
  const [connectionError, setConnectionError] = useState<string | null>(null);
  const [replayed, setReplayed] = useState<ReadonlySet<string>>(new Set());
  const [lastTaskId, setLastTaskId] = useState<string | null>(null);
  const unmounted = useRef(new AbortController());
  useEffect(() => {
    unmounted.current = new AbortController();
    return () => unmounted.current.abort();
  }, [sid]);
  const call = (request: PlayCall) => {
    if (busy) return;
    setBusy(true);
    setConnectionError(null);
    // With a live socket, events update the page.
    const refresh = () => void (link.state() === 'live' || refreshSession(client, sid));
    const onTaskId = (taskId: string) => {
      setLastTaskId(taskId);
      refresh();
    };
    link
      .call(request, onTaskId, unmounted.current.signal)
      .then(
        (played) => played.replayed && setReplayed((before) => new Set([...before, played.taskId])),
        (error: unknown) => !unmounted.current.signal.aborted && setConnectionError(error instanceof Error ? error.message : String(error)),
      )
      .finally(() => {
        setBusy(false);
        refresh();
      });
  };
  return { busy, connectionError, replayed, lastTaskId, call };
}
