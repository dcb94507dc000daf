/** Limits that a session must fit into; null = none. */
export interface SlotLimits {
  /** Of one replica of the environment. */
  capacity: number | null;
  /** Each API process runs a replica of the environment; else there is one, wherever it is. */
  owned: boolean;
  key: number | null;
  org: number | null;
}

export interface WaitingSession {
  sid: string;
  versionId: string;
  /** Who is to be treated fairly: the API key, or the user of a browser. */
  holder: string;
  orgId: string;
  limits: SlotLimits;
  /** The API process that its client is connected to. */
  waitingOn: string;
  queuedAt: number;
}

/** How many sessions of a kind hold slots. */
export interface HeldSlots {
  versionId: string;
  ownerReplicaId: string | null;
  holder: string;
  orgId: string;
  count: number;
}

/** How many sessions of a key and an organisation have not ended, those without a slot included. */
export interface LivingSessions {
  holder: string;
  orgId: string;
  count: number;
}

export interface AdmissionFacts {
  waiting: WaitingSession[];
  held: HeldSlots[];
  /** API processes that take new sessions. */
  replicas: string[];
}

/** `ownerReplicaId`: the process whose slot it is; null where any can serve it. */
export interface AdmittedSession {
  sid: string;
  ownerReplicaId: string | null;
}

export interface AdmissionStore {
  /** One round: under a lock of all processes, reads the facts, and stores what `decide` answers. */
  round(decide: (facts: AdmissionFacts) => AdmittedSession[]): Promise<void>;
  living(): Promise<LivingSessions[]>;
  /** Of these sessions, those that wait no longer. */
  settled(sids: string[]): Promise<string[]>;
}
