export function apiPages(document: object): { name: string; title: string; text: string }[];
