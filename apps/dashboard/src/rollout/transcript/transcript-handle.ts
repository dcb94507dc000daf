export interface TranscriptHandle {
  /** Scrolls the row to the top and keeps it there while row heights are still measured. */
  scrollToTop: (row: number) => void;
  /** Does the same unless the row is fully visible. */
  reveal: (row: number) => void;
}
