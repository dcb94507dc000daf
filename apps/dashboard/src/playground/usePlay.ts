import { useQueryClient } from '@tanstack/react-query';
import type { SessionView } from '@palestra/protocol';
import { useEffect, useRef, useState } from 'react';
import { callTool, pingSession, type PlayCall } from '../data/playground.ts';
import { refreshSession } from '../data/sessions.ts';

const MIN_PING_MS = 5_000;
const MAX_PING_MS = 60_000;

/** Tells the session's clock of silence that somebody is here, while the page is open. Its other clock, that of requests, goes on. */
export function useKeepAlive(session: SessionView | undefined): void {
  const { sid, live, heartbeat_timeout_s: heartbeat } = session ?? {};
  useEffect(() => {
    if (sid === undefined || !live || heartbeat === undefined) return;
    const every = Math.min(MAX_PING_MS, Math.max(MIN_PING_MS, (heartbeat * 1_000) / 3));
    // One that fails is no news: the session's own state says when it is over.
    const timer = setInterval(() => void pingSession(sid).catch(() => {}), every);
    return () => clearInterval(timer);
  }, [sid, live, heartbeat]);
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
export function usePlay(sid: string): Play {
  const client = useQueryClient();
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
    callTool(
      sid,
      asked,
      (taskId) => {
        setMine(taskId);
        void refreshSession(client, sid);
      },
      leaving.current.signal,
    )
      .then(
        (played) => played.replayed && setReplayed((before) => new Set([...before, played.taskId])),
        (error: unknown) => !leaving.current.signal.aborted && setProblem(error instanceof Error ? error.message : String(error)),
      )
      .finally(() => {
        setBusy(false);
        void refreshSession(client, sid);
      });
  };
  return { busy, problem, replayed, mine, call };
}
