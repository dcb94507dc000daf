import { Inject, Injectable } from '@nestjs/common';
import { newUuid } from '@palestra/kit';
import { type KeepSession, type KeptSession, PalestraError, parseJson, stringifyJson } from '@palestra/protocol';
import type { Caller, Recording } from '@palestra/session';
import { Database } from '../../platform/database/database.ts';
import { Recorder } from './recorder.ts';
import { beginRecording } from './recording.sql.ts';
import { SessionServer } from '../server/session-server.ts';
import { SessionService } from '../management/session.service.ts';

/** Records sessions as rollouts after they were opened, running or ended: from their first call, as if they had been opened with a run. */
@Injectable()
export class SessionRolloutService {
  constructor(
    @Inject(Database) private readonly database: Database,
    @Inject(SessionService) private readonly sessions: SessionService,
    @Inject(SessionServer) private readonly server: SessionServer,
    @Inject(Recorder) private readonly recorder: Recorder,
  ) {}

  /** Resolves when the calls so far are stored, except those of the last seconds. Idempotent: the first run stays. */
  async keep(caller: Caller, id: string, body: KeepSession): Promise<KeptSession> {
    const session = await this.sessions.get(caller, id);
    const { sid } = session;
    if (session.task === null) {
      throw new PalestraError('invalid_request', { detail: 'The session never opened an episode: there is nothing to keep.' });
    }
    const recording: Recording = {
      run: body.run,
      rolloutId: newUuid(),
      name: body.rollout ?? null,
      step: null,
      split: null,
      taskIndex: null,
      metadata: { played_by: session.holder.user },
    };
    const stored = await beginRecording(this.database.pool, caller.orgId, sid, stringifyJson(recording));
    if (stored === null) throw new PalestraError('session_not_found', { detail: 'No such session.' });
    // This process reads the change at once. Another process notices it by the version, and its sweep writes what it missed.
    await this.server.engine.refreshLocation(caller, sid);
    await this.recorder.writeSession(sid);
    const { run, rolloutId, name } = parseJson(stored) as Recording;
    return { sid, run, rollout_id: rolloutId, rollout: name };
  }
}
