/** The limits that apply to a session. Null: no limit. */
export interface SlotLimits {
  /** Sessions on one replica of the environment. */
  capacity: number | null;
  /** True when each API process runs a replica of the environment; false when there is one replica for all. */
  owned: boolean;
  /** The capacity is of all API processes together, also where each of them owns the sessions that it opens. Stored sessions may lack it. */
  shared?: boolean;
  key: number | null;
  org: number | null;
}

export interface WaitingSession {
  sid: string;
  versionId: string;
  /** The unit of fairness: an API key, or the user of a browser. */
  holder: string;
  orgId: string;
  limits: SlotLimits;
  /** The API process that its client is connected to. */
  waitingOn: string;
  queuedAt: number;
}

/** How many sessions with these properties hold slots. */
export interface HeldSlots {
  versionId: string;
  ownerReplicaId: string | null;
  holder: string;
  orgId: string;
  count: number;
}

/** How many sessions of a key and an organisation have not ended, including those without a slot. */
export interface OpenSessionCount {
  holder: string;
  orgId: string;
  count: number;
}

export interface AdmissionSnapshot {
  waiting: WaitingSession[];
  held: HeldSlots[];
  /** API processes that take new sessions. */
  replicas: string[];
}

/** `ownerReplicaId`: the process whose slot it got; null where any process can serve the session. */
export interface AdmittedSession {
  sid: string;
  ownerReplicaId: string | null;
}

export interface AdmissionStore {
  /** Reads a snapshot and stores the result of `decide`, under a lock that all processes share. */
  round(decide: (snapshot: AdmissionSnapshot) => AdmittedSession[]): Promise<void>;
  countOpen(): Promise<OpenSessionCount[]>;
  /** Those of these sessions that no longer wait. */
  findAdmittedOrEnded(sids: string[]): Promise<string[]>;
}
