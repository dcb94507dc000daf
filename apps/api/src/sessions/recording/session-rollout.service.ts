import { Inject, Injectable } from '@nestjs/common';
import { newUuid } from '@palestra/kit';
import { type KeepSession, type KeptSession, PalestraError, parseJson, stringifyJson } from '@palestra/protocol';
import type { Caller, Recording } from '@palestra/session';
import { Database } from '../../platform/database/database.ts';
import { Recorder } from './recorder.ts';
import { beginRecording } from './recording.sql.ts';
import { SessionServer } from '../server/session-server.ts';
import { SessionService } from '../management/session.service.ts';

/** Sessions that become rollouts after they were opened, running or ended: from their first call on, as if a run had been named at once. */
@Injectable()
export class SessionRolloutService {
  constructor(
    @Inject(Database) private readonly database: Database,
    @Inject(SessionService) private readonly sessions: SessionService,
    @Inject(SessionServer) private readonly server: SessionServer,
    @Inject(Recorder) private readonly recorder: Recorder,
  ) {}

  /** Answers when what has ended so far is stored, calls of this very second excepted. Idempotent: the first run stays. */
  async keep(caller: Caller, given: string, body: KeepSession): Promise<KeptSession> {
    const session = await this.sessions.get(caller, given);
    const { sid } = session;
    if (session.task === null) {
      throw new PalestraError('invalid_request', { detail: 'The session never opened an episode: there is nothing to keep.' });
    }
    const wanted: Recording = {
      run: body.run,
      rolloutId: newUuid(),
      name: body.rollout ?? null,
      step: null,
      split: null,
      taskIndex: null,
      metadata: { played_by: session.holder.user },
    };
    const stored = await beginRecording(this.database.pool, caller.orgId, sid, stringifyJson(wanted));
    if (stored === null) throw new PalestraError('session_not_found', { detail: 'No such session.' });
    // Here at once; another process notices by the version, and its sweep writes what it overlooked.
    await this.server.engine.refreshLocation(caller, sid);
    await this.recorder.note(sid);
    const { run, rolloutId, name } = parseJson(stored) as Recording;
    return { sid, run, rollout_id: rolloutId, rollout: name };
  }
}
