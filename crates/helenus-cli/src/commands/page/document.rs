//! The frame of an HTML page.

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A page. Its texts are HTML, except `over` and `title`, which are escaped.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// The command that wrote the page.
    pub over: &'a str,
    /// The subject of the page.
    pub title: &'a str,
    /// A summary of the work in a sentence or two.
    pub lead: String,
    /// The content below the summary.
    pub body: String,
}

impl Document<'_> {
    /// The complete HTML page.
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

/// Escapes a text for HTML, also within attributes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
