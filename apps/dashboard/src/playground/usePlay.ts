import { useQueryClient } from '@tanstack/react-query';
import type { SessionView } from '@palestra/protocol';
import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import type { PlayCall } from '../data/playground.ts';
import { type LinkState, SessionLink } from '../data/session-link.ts';
import { refreshSession } from '../data/sessions.ts';

const MIN_PING_MS = 5_000;
const MAX_PING_MS = 20_000;

/** Plays and follows a session while the page is open. `known`: it has been read. */
export function useSessionLink(sid: string, known: boolean): SessionLink {
  const client = useQueryClient();
  const [link] = useState(() => new SessionLink(client, sid));
  useEffect(() => (known ? link.start() : undefined), [link, known]);
  return link;
}

export const useLinkState = (link: SessionLink): LinkState => useSyncExternalStore(link.subscribe, link.state);

/** Tells the session's clock of silence that somebody is here, while the page is open. Its other clock, that of requests, goes on. */
export function useKeepAlive(session: SessionView | undefined, link: SessionLink): void {
  const { sid, live, heartbeat_timeout_s: heartbeat } = session ?? {};
  useEffect(() => {
    if (sid === undefined || !live || heartbeat === undefined) return;
    const every = Math.min(MAX_PING_MS, Math.max(MIN_PING_MS, (heartbeat * 1_000) / 3));
    const timer = setInterval(() => link.ping(), every);
    return () => clearInterval(timer);
  }, [sid, live, heartbeat, link]);
}

export interface Play {
  busy: boolean;
  /** What went wrong with the way to the server, not with the tool. */
  problem: string | null;
  /** Calls whose stored result was read after their connection broke. */
  replayed: ReadonlySet<string>;
  /** The task id of the player's last call: what the reader waits for. */
  mine: string | null;
  call: (call: PlayCall) => void;
}

/** Calls tools of one session, one after another. */
export function usePlay(link: SessionLink): Play {
  const client = useQueryClient();
  const { sid } = link;
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [replayed, setReplayed] = useState<ReadonlySet<string>>(new Set());
  const [mine, setMine] = useState<string | null>(null);
  const leaving = useRef(new AbortController());
  useEffect(() => {
    leaving.current = new AbortController();
    return () => leaving.current.abort();
  }, [sid]);
  const call = (asked: PlayCall) => {
    if (busy) return;
    setBusy(true);
    setProblem(null);
    // Over the socket, events tell what becomes of it.
    const refresh = () => void (link.state() === 'live' || refreshSession(client, sid));
    const onTaskId = (taskId: string) => {
      setMine(taskId);
      refresh();
    };
    link
      .call(asked, onTaskId, leaving.current.signal)
      .then(
        (played) => played.replayed && setReplayed((before) => new Set([...before, played.taskId])),
        (error: unknown) => !leaving.current.signal.aborted && setProblem(error instanceof Error ? error.message : String(error)),
      )
      .finally(() => {
        setBusy(false);
        refresh();
      });
  };
  return { busy, problem, replayed, mine, call };
}
