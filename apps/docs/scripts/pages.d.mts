export function titleOf(text: string): string;
export function stagePage(file: string, text: string, pages: Map<string, { page: string; title: string }>): string;
