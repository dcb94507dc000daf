export { errorCatalogue, type ErrorCode, PalestraError } from './error-catalogue.ts';
export { classifyCode } from './failure-class.ts';
export { ORS_VERSION } from './ors-version.ts';
export { MAX_JSON_DEPTH, JsonBounds } from './json-bounds.ts';
export {
  type CauseClass,
  classOfFingerprint,
  failureClassCode,
  fingerprintOfBigint,
  fingerprintOfHash,
  fingerprintToBigint,
} from './failure-fingerprint.ts';
export type { JsonValue, JsonObject } from './json.ts';
export { isObject, parseJson, stringifyJson, toPlainNumber, toFiniteNumber } from './lossless.ts';
export {
  parseBody,
  readSplitBody,
  readTaskBody,
  readTaskRangeBody,
  readCreateSessionBody,
  readCreateBody,
  readCallBody,
  readScoreGroupBody,
} from './request-body.ts';
export {
  type ToolSpec,
  type TerminalTool,
  type ToolsAnswer,
  type Split,
  type TextBlock,
  type ImageBlock,
  type ReasoningBlock,
  type ToolCallBlock,
  type ToolResultBlock,
  type OutputBlock,
  type MessageBlock,
  type Message,
  type ToolOutput,
  type ToolErrorReason,
  type RunToolOutput,
  type GroupScore,
  type GroupCandidate,
  type TaskSpec,
  type CallBody,
} from './episode.schema.ts';
export { MAX_REGEX_SIZE, regexSize } from './regex-size.ts';
export {
  PROVENANCES,
  type Provenance,
  PROVENANCE_FIELDS,
  type ProvenanceField,
  STOP_REASONS,
  type StopReason,
  TRUNCATED_STOPS,
  INTERRUPTED_STOPS,
  KNOWN_PHASES,
  type KnownPhase,
  PHASES,
  type Phase,
  ROLLOUT_STATES,
  type RolloutState,
  UNSCORED_FAILURES,
  type UnscoredFailure,
  VERIFICATIONS,
  type Verification,
  ROLLOUT_SOURCES,
  type RolloutSource,
  MESSAGE_TYPES,
  type MessageType,
  LENSES,
  type Lens,
  DENOMINATORS,
  type Denominator,
  type Axis,
  ROLLOUT_SORTS,
  type RolloutSort,
  GROUP_SORTS,
  type GroupSort,
  COMPARE_METRICS,
  COMPARE_SORTS,
  type CompareMetric,
  type CompareSort,
  ALERT_METRICS,
  type AlertMetric,
  VERDICTS,
  type Verdict,
  PAIR_CHOICES,
  type PairChoice,
  type ReviewMode,
  SESSION_STATES,
  ENDED_SESSION_STATES,
  type SessionState,
  CALL_FAILURES,
  CAUSE_KINDS,
  type CauseKind,
  FAILURE_CLASSES,
  INFRASTRUCTURE_FAILURE,
  type FailureClass,
  type CallState,
  ROLES,
  type Role,
  KEY_SCOPES,
  type KeyScope,
  SPLIT_TYPES,
  type SplitType,
  IMPORT_FORMATS,
  type ImportFormat,
  ROLLOUT_EXPORT_FORMATS,
  type RolloutExportFormat,
  type TaskFileFormat,
  TASK_ROW_FORMATS,
  JSON_LINES_ROW_FORMATS,
  MAX_EXCLUDED_KEYS,
  type TaskRowFormat,
  SHARE_KINDS,
  STREAM_EVENTS,
  type ShareKind,
  type StreamEvent,
  type AuditAction,
  DEMO_ENVIRONMENT,
  DEMO_RUNS,
  DEMO_TAG,
} from './vocabularies.ts';
export type { MeView, BrowserSession, BrowserSessionList } from './schemas/account.schema.ts';
export type {
  Alert,
  AlertBody,
  AlertCondition,
  AlertEvent,
  AlertEventList,
  AlertEventQuery,
  AlertEvidence,
  AlertList,
  AlertPreview,
  AlertPreviewBody,
  BaselineCondition,
  CountCondition,
  CrashesCondition,
  MetricCondition,
  NewAlert,
  NewAlertPreview,
  ReadAlertEvents,
  RunAlerts,
  SilenceCondition,
  UnreadAlertEvents,
} from './schemas/alerts/alert.schema.ts';
export type {
  ChangeWebhook,
  CreateWebhook,
  Delivery,
  DeliveryList,
  DeliveryQuery,
  QueuedDelivery,
  Webhook,
  WebhookList,
  WebhookSecret,
} from './schemas/alerts/webhook.schema.ts';
export type {
  AnnotationBody,
  AnnotationQuery,
  Annotation,
  AnnotationList,
  NewAnnotation,
  BulkAnnotation,
  BulkAnnotationBody,
  NewBulkAnnotation,
} from './schemas/annotation.schema.ts';
export type {
  CreateReviewQueue,
  NewReviewQueue,
  ReviewQueue,
  ReviewQueueList,
  ReviewQueueDetail,
  ReviewItem,
  NextReview,
  NextReviewBody,
  ReviewAnswerBody,
  NewReviewAnswer,
} from './schemas/review.schema.ts';
export type { AuditExportQuery, AuditQuery, AuditEvent, AuditList } from './schemas/audit.schema.ts';
export type { CompareQuery, ComparedRuns } from './schemas/compare/compare-runs.schema.ts';
export type { CompareTasksQuery, ComparedTasks } from './schemas/compare/compare-tasks.schema.ts';
export type {
  CreateEnvironment,
  UpdateEnvironment,
  CreateVersion,
  EnvironmentVersionView,
  EnvironmentVersionList,
  EnvironmentView,
  EnvironmentDetails,
  StoredReport,
  EnvironmentList,
  EnvironmentDiscoveryView,
  EnvironmentListQuery,
  TaskPageQuery,
  TaskPageView,
  ApiUsageQuery,
  EnvironmentUsage,
  EnvironmentRunsQuery,
  EnvironmentRuns,
} from './schemas/environments/environment.schema.ts';
export type { EnvironmentReport, EnvironmentReportQuery, EnvironmentReportView } from './schemas/environments/environment-report.schema.ts';
export {
  DEPLOY_STATES,
  type DeployState,
  FINAL_DEPLOY_STATES,
  HOSTING_PROVIDERS,
  type HostingProvider,
  INSTANCE_STATES,
  type InstanceState,
  ISOLATIONS,
  type IsolationLevel,
  LOG_SEVERITIES,
  type LogSeverity,
} from './hosting-vocabulary.ts';
export type {
  HostingOffer,
  HostingSettings,
  HostingSettingsInput,
  DeploySource,
  DeployOptions,
  DeployOptionsInput,
  CreateDeploy,
  CreateDeployInput,
  UploadDeployQuery,
  DeployView,
  DeployList,
  HostingLogQuery,
  HostingLogLine,
  InstanceView,
  InstanceList,
  ChannelView,
  ChannelList,
  Promote,
  PromoteInput,
  Rollback,
  RollbackInput,
  VersionDiff,
  SecretList,
  SecretValue,
} from './schemas/environments/hosting.schema.ts';
export type { ConnectGithub, GithubSettings, UpdateGithub } from './schemas/environments/github.schema.ts';
export type { GitHookAnswer, GitLinkAnswer, GitLinkBody, GitLinkView, LinkedGit } from './schemas/environments/git-link.schema.ts';
export type { UploadUrlsBody, FileListQuery } from './schemas/file.schema.ts';
export type { Health } from './schemas/health.schema.ts';
export type { CreateKeyBody, ApiKeyView, CreatedKey, RotateSecret, RotatedSecret, NewKey } from './schemas/key.schema.ts';
export type {
  ChangeOrganisation,
  CreateOrganisation,
  CreateMember,
  ChangeMember,
  Organisation,
  CreatedOrganisation,
  Member,
  MemberList,
  CreatedMember,
  SignInLink,
  NewMember,
} from './schemas/organisation.schema.ts';
export type { Deleted } from './schemas/page.schema.ts';
export type {
  CreateRolloutExport,
  RolloutExportView,
  RolloutExportList,
  CancelledExport,
  RolloutExportBody,
} from './schemas/rollout-export.schema.ts';
export type { RolloutHeader, RolloutBeside, RolloutOutline, RolloutCalls, RolloutDiff } from './schemas/rollout-reads.schema.ts';
export type { IngestReceipt, EventResult } from './schemas/rollout.schema.ts';
export type {
  RolloutRow,
  RolloutMessageView,
  RolloutView,
  MessagePage,
  RolloutListQuery,
  RolloutList,
  RolloutCount,
} from './schemas/rollout.schema.ts';
export type { RolloutStartEvent, RolloutMessageEvent, RolloutUpdateEvent, RolloutEvent } from './schemas/rollout-event.schema.ts';
export type {
  Advisory,
  RunSeriesQuery,
  RunHeatmapQuery,
  RunSummaryQuery,
  RunSeries,
  RunHeatmap,
  RunSummary,
  RunStepsQuery,
  RunSteps,
} from './schemas/run-curves.schema.ts';
export type { MoveCause, RunMove, RunMoves, RunMovesQuery } from './schemas/compare/run-moves.schema.ts';
export type {
  GroupListQuery,
  GroupQuery,
  RunTaskListQuery,
  Group,
  GroupList,
  GroupView,
  RunTaskList,
  RunTask,
} from './schemas/run-groups.schema.ts';
export type { FailureCauseView, FailureList, FailureQuery } from './schemas/failure.schema.ts';
export type { ToolListQuery, ToolList, RunConfig, RunFacets } from './schemas/run-insights.schema.ts';
export type { ToolQuery, ToolCheckQuery, ToolSteps, ToolCheck } from './schemas/run-tools.schema.ts';
export type {
  RunListQuery,
  TaskDifficultyQuery,
  RunView,
  ListedRun,
  RunList,
  TaskDifficulty,
  RunChangeBody,
} from './schemas/run.schema.ts';
export type { SavedViewBody, SavedView, SavedViewList, NewSavedView } from './schemas/annotation.schema.ts';
export type { SearchQuery, SearchPage } from './schemas/search.schema.ts';
export type { SessionPolicyView } from './schemas/session-policy.schema.ts';
export type {
  SessionListQuery,
  SessionCallListQuery,
  SessionEventsQuery,
  OpenSession,
  ForkSession,
  SessionRun,
  OpenSessionBody,
  SessionHolder,
  SessionLastCall,
  SessionRow,
  SessionRecordingView,
  SessionList,
  SessionView,
  SessionStateView,
  SessionCallView,
  SessionCallList,
  SessionForkView,
  KeepSession,
  KeptSession,
  KeepSessionBody,
} from './schemas/session.schema.ts';
export type { SessionClientFrame, SessionServerFrame } from './schemas/live/session-socket.schema.ts';
export type { CreateShare, NewShare, Share, ShareList, CreatedShare, OpenShare } from './schemas/share.schema.ts';
export type { SlotListQuery, SlotList, SlotGroup, SlotHolder } from './schemas/slot.schema.ts';
export type { CreateTaskExport, TaskExportView, TaskExportBody } from './schemas/task-export.schema.ts';
export type {
  SplitUpload,
  TaskSetView,
  PublishedTaskSet,
  TaskSetList,
  TaskSplitView,
  StoredSplitView,
} from './schemas/environments/task-set.schema.ts';
export type { SocketError } from './schemas/live/socket-error.schema.ts';
export type { StreamCounters, StreamAdvisories, StreamRollout, StreamData, StreamMessage } from './schemas/live/stream.schema.ts';
export type { OpenText, TextStepBody, TextParse } from './schemas/text-session.schema.ts';
export type { TextClientFrame, TextServerFrame } from './schemas/live/text-socket.schema.ts';
