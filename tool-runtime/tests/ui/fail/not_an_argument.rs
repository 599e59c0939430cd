use tool_runtime::tool_server;

pub struct Point {
    pub x: f64,
}

#[tool_server(name = "points", version = "1.0.0")]
mod points {
    use super::Point;

    /// Has no derive at all.
    #[tool]
    pub async fn plain(place: Point) -> String {
        place.x.to_string()
    }

    /// The same in an `Option`.
    #[tool]
    pub async fn optional(place: Option<Point>) {
        drop(place);
    }

    /// The same in a list.
    #[tool]
    pub async fn list(places: Vec<Point>) {
        drop(places);
    }

    /// The same as everything.
    #[tool]
    pub async fn whole(#[arg(flatten)] place: Point) {
        drop(place);
    }
}

fn main() {}
