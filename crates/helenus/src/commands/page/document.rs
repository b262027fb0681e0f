//! The frame of a page.

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A page: its texts are HTML but for `over` and `title`.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// The command that wrote it.
    pub over: &'a str,
    /// What it is about.
    pub title: &'a str,
    /// What was done, in a sentence or two.
    pub lead: String,
    /// All that follows.
    pub body: String,
}

impl Document<'_> {
    /// The whole page.
    pub fn html(&self) -> String {
        let (over, title) = (escape(self.over), escape(self.title));
        let (lead, body) = (&self.lead, &self.body);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <header>\n<p class=\"over\">{over}</p>\n<h1>{title}</h1>\n<p class=\"lead\">{lead}</p>\n</header>\n\
             {body}</main>\n<div id=\"tip\" hidden></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
        )
    }
}

/// A text within HTML, in an attribute too.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
